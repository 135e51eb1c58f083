// One group: its state over time, its members with both countdowns, what happened to it and why.

import { Refusal } from "./ask.js";
import { band } from "./band.js";
import { nameOf } from "./beats.js";
import { countdown, isStale, knownNow, learn, serverNow, show } from "./countdown.js";
import { ecg } from "./ecg.js";
import { id, make, reconcile, say, visible } from "./dom.js";
import { lag } from "./lag.js";
import { openRebalance, underWay } from "./now.js";
import { report } from "./report.js";
import { sayStatus } from "./status.js";
import { STATUSES, between, cause, clockTime, course, day, duration, plain, stateClass, unit } from "./words.js";

const ROWS = 50;
const BAND_ROWS = 500;

/** The view of the group at an API path, standing at an instant if one is given, with the report of a stretch open. */
export function group(path, { atMs, fromMs, toMs }) {
  const title = make("h1");
  const facts = make("p", "facts");
  const open = make("p", "soft open");
  const rung = make("p", "soft rung");
  const beyond = make("p", "soft beyond");
  const states = band();
  const heart = ecg(
    () => view.onNeed(),
    (standsAtMs) => {
      asked = standsAtMs;
      view.onStand(standsAtMs);
    },
    atMs,
  );
  const behind = lag();
  let asked = atMs; // the instant of the address, until the slider is moved
  let oldestMs = null;
  let links = null;
  const ticket = report(() => {
    const { fromMs, toMs } = heart.range();
    return { path: links.incident, fromMs: Math.max(fromMs, oldestMs ?? fromMs), toMs: Math.min(toMs, serverNow()) };
  });
  ticket.open.disabled = true;
  const members = make("ul", "rows members");
  const nobody = make("p", "empty", "No member is present.");
  const rebalances = make("ol", "story");
  const evictions = make("ol", "story");
  const history = make("ol", "story");
  const present = make("h2", "", "Members");
  const parts = { title, facts, open, beyond, heart, behind, states, present, members, nobody, rebalances, evictions, history };
  const view = {
    onNeed: () => {},
    onStand: () => {},
    loading: "Loading the group …",
    root: [
      make("div", "about", make("div", "", title, facts, beyond, open, rung), ticket.open),
      ticket.root,
      heart.root,
      behind.root,
      states.root,
      make("section", "card", present, members, nobody),
      make(
        "div",
        "two",
        make("section", "card", make("h2", "", "Rebalances and their causes"), rebalances, make("p", "empty", "None so far.")),
        make("section", "card", make("h2", "", "Evictions"), evictions, make("p", "empty", "Nobody was evicted.")),
      ),
      make("section", "card", make("h2", "", "State history"), history, make("p", "empty", "No change so far.")),
    ],
    questions: async (ask) => {
      const first = await ask(path);
      links = first.group.links;
      if (ticket.open.disabled) {
        ticket.open.disabled = false;
        if (fromMs !== null && toMs !== null) ticket.show(links.incident, fromMs, toMs);
      }
      learn(first.freshness);
      if (oldestMs === null) {
        const oldest = await ask(`${links.history}?order=oldest&limit=1`);
        oldestMs = oldest.transitions[0]?.at_ms ?? null;
      }
      const [known, then, open, past, taken, changes, lagNow, bandChanges, bandTaken] = await Promise.all([
        heart.questions(ask, links, first.freshness, oldestMs),
        asItWas(ask, first.group.href, heart),
        openRebalance(ask, first.group),
        ask(`${links.rebalances}?limit=${ROWS}`),
        ask(`${links.evictions}?limit=${ROWS}`),
        ask(`${links.history}?limit=${ROWS}`),
        behind.questions(ask, links),
        ...bandOf(ask, links, heart),
      ]);
      return {
        freshness: first.freshness,
        group: first.group,
        evidence: first.evidence,
        then,
        open,
        members: known.members,
        known,
        oldestMs,
        rebalances: past.rebalances,
        evictions: taken.evictions,
        history: changes.transitions,
        lag: lagNow,
        band: { changes: bandChanges.transitions, evictions: bandTaken.evictions },
      };
    },
    update: (answer) => {
      update(parts, answer);
      say(beyond, beyondKnown(asked, answer.freshness.complete_as_of_ms));
      say(rung, lacking(answer.evidence));
    },
  };
  return view;
}

/** What the band of states shows: changes and evictions up to where the slider stands. */
function bandOf(ask, links, heart) {
  const until = heart.isLive() ? "" : `&to=${Math.floor(heart.atMs()) + 1}`;
  return [ask(`${links.history}?entity=group&limit=${BAND_ROWS}${until}`), ask(`${links.evictions}?limit=${ROWS}${until}`)];
}

/** The group at the instant that is shown, or null if that is now, or before anything is known of it. */
async function asItWas(ask, href, heart) {
  if (heart.isLive()) return null;
  const atMs = Math.floor(heart.atMs());
  try {
    return { atMs, group: (await ask(`${href}?at=${atMs}`)).group };
  } catch (error) {
    // The slider may stand a moment ahead of what has been read: that is said, and asked again with the next batch.
    if (error instanceof Refusal && (error.status === 404 || error.code === "beyond_complete")) return { atMs, group: null };
    throw error;
  }
}

/** What is read of the group's broker, and what cannot be asked for want of more; nothing where everything can. */
function lacking({ read, questions }) {
  const asked = (needs) => questions.filter((one) => one.needs === needs).map(({ question }) => `“${question}”`);
  const needs = [...new Set(questions.map((one) => one.needs).filter(Boolean))];
  if (!needs.length) return "";
  return `Read of its broker: ${read}. ${needs.map((one) => `${asked(one).join(", ")} ${one}.`).join(" ")}`;
}

/** What is said where somebody asks about an instant that has not been read yet; the API refuses it in the same words. */
function beyondKnown(askedMs, reachedMs) {
  if (askedMs === null || (reachedMs !== null && askedMs <= reachedMs)) return "";
  if (reachedMs === null) return "Nothing has been read yet.";
  const instant = (atMs) => `${day(atMs, serverNow())} ${clockTime(atMs)}`.trim();
  return `Nothing is known beyond ${instant(reachedMs)}, so nothing of ${instant(askedMs)}. What follows is as far as is known.`;
}

function update(parts, { known, oldestMs, freshness, group: found, then, open, members, rebalances, evictions, history, band: states, lag: lagNow }) {
  parts.behind.update(lagNow, found?.protocols ?? []);
  if (!parts.title.firstChild) parts.title.append(id(found.group_id));
  updateFacts(parts.facts, then === null ? found : then.group, then?.atMs ?? null);
  say(parts.open, then === null && open !== null ? `Rebalancing ${underWay(open)}.` : "");
  say(parts.present, then === null ? "Members" : "Members now");
  const events = [...rebalances.map((one) => one.started_at_ms), ...evictions.map((one) => one.ended_at_ms)];
  parts.heart.update(known, oldestMs, events);
  const readMs = freshness.complete_as_of_ms ?? freshness.answered_at_ms;
  parts.states.update(states.changes, states.evictions, parts.heart.isLive() ? readMs : Math.min(readMs, parts.heart.atMs()));
  const rank = (member) => STATUSES.indexOf(member.shown);
  const ranked = [...members].sort((one, other) => rank(one) - rank(other) || (nameOf(one) < nameOf(other) ? -1 : 1));
  reconcile(parts.members, ranked, (member) => member.href, createMember, updateMember);
  parts.nobody.hidden = members.length > 0;
  story(parts.rebalances, rebalances, (one) => one.started_at_ms, (one) => one.started_at_ms + "/" + one.generation_before, (one) => [
    `${cause(one)}.`,
    course(one, serverNow()),
    one.reason ? `“${visible(one.reason, 200)}”` : "",
  ]);
  story(parts.evictions, evictions, (one) => one.ended_at_ms, (one) => `${one.href}/${one.joined_at_ms}`, (one) => [
    `${visible(nameOf(one), 80)}: ${plain(one.end_cause)}.`,
    `was a member for ${duration(one.lived_ms)} · ${one.certainty}${ended(one)}${one.client_host ? ` · ${visible(one.client_host)}` : ""}`,
    [one.end_reason ? `“${visible(one.end_reason, 200)}”` : "", one.fault ? `broken by: ${plain(one.fault)} (${one.fault_certainty})` : ""]
      .filter((text) => text !== "").join(" · "),
  ]);
  const inTime = [...history].sort((one, other) => other.at_ms - one.at_ms || other.seq - one.seq);
  story(parts.history, inTime, (one) => one.at_ms, (one) => String(one.seq), (one) => [
    `${one.entity === "group" ? "Group" : visible(one.member_id ?? "a member", 80)}: ${one.from_state === one.to_state ? `stays ${plain(one.to_state)}` : `${plain(one.from_state)} → ${plain(one.to_state)}`}`,
    `${plain(one.cause)} · ${one.certainty}${within(one.at_ms, one.at_bound_ms)}${one.generation_id === null ? "" : ` · ${unit(found.protocols)} ${one.generation_id}`}`,
    "",
  ]);
}

function ended(one) {
  return within(one.ended_at_ms, one.at_bound_ms);
}

function within(atMs, boundMs) {
  const bounds = between(atMs, boundMs);
  return bounds && ` · ${bounds}`;
}

/** The state of the group now (`atMs` null) or then; `found` null: nothing is known of that instant. */
function updateFacts(facts, found, atMs) {
  if (!facts.firstChild) {
    facts.append(make("b"), make("span", "status"), make("span", "chip"), make("span"), make("span"), make("span"));
  }
  const [when, status, chip, since, generation, total] = facts.children;
  say(when, atMs === null ? "" : `at ${day(atMs, serverNow())} ${clockTime(atMs)}`.replace("  ", " "));
  if (atMs === null) sayStatus(status, found.shown);
  else {
    status.className = `status ${found?.shown ?? "none"}`; // what was so then does not age
    say(status, found === null ? "not known yet" : found.shown ?? "nobody");
  }
  chip.className = `chip ${stateClass(found?.state ?? "Unknown")}`;
  say(chip, plain(found?.state ?? "Unknown"));
  const sinceMs = found?.state_since_at_ms ?? null;
  say(since, sinceMs === null ? "" : lasted(sinceMs, atMs));
  say(generation, (found?.generation_id ?? null) === null ? "" : `${unit(found.protocols)} ${found.generation_id}`);
  say(total, found === null ? "" : `${found.members.total} member${found.members.total === 1 ? "" : "s"}`);
}

/** How long a state has lasted at an instant of the past, now (`atMs` null), or up to where an old feed ends. */
function lasted(sinceMs, atMs) {
  const toMs = Math.max(sinceMs, atMs ?? knownNow());
  return `for ${duration(toMs - sinceMs)}${atMs === null && isStale() ? `, up to ${clockTime(toMs)}` : ""}`;
}

function createMember(member) {
  const library = [member.client_software_name, member.client_software_version].filter(Boolean).join(" ");
  const about = [member.group_instance_id ? "static" : "", library, member.client_host ?? ""].filter(Boolean).map((one) => visible(one, 60));
  return make(
    "li",
    "",
    make("div", "", make("p", "", id(nameOf(member), "", 80)), make("p", "soft mono", id(member.member_id, "", 60)), make("p", "soft wide", about.join(" · "))),
    make("div", "verdict", make("span", "status"), make("p", "soft")),
    countdown("session"),
    countdown("poll"),
    make("p", "wide soft"),
  );
}

function updateMember(row, member) {
  const [, verdict, session, poll, reasons] = row.children;
  const [status, heard] = verdict.children;
  sayStatus(status, member.shown);
  const polls = member.poll?.evidence;
  say(heard, polls === "none" ? "no poll seen" : polls ? `polls seen by ${plain(polls)}` : "");
  const trouble = troubled(member);
  const runs = member.shown !== "unseen"; // who waits in a JoinGroup has no timeout; whether it does is not seen yet
  show(session, runs ? member.session : null, member.session?.timeout_ms ?? null, trouble.has("session") ? member.shown : "ok");
  show(poll, runs ? member.poll : null, pollTimeout(member.poll), trouble.has("poll") ? member.shown : "ok");
  say(reasons, member.reasons.map((one) => plain(one)).join(" · "));
  reasons.hidden = member.reasons.length === 0;
}

/** The status is the member's; only the deadline that it is about raises the alarm: the predicted one, or the nearer. */
function troubled(member) {
  if (["ok", "awaited", "unseen", "unknown", "ended"].includes(member.shown)) return new Set();
  if (member.predictions.length) return new Set(member.predictions.map((one) => one.kind));
  const left = (deadline) => deadline?.headroom_ratio ?? Infinity;
  return new Set([left(member.poll) < left(member.session) ? "poll" : "session"]);
}

function pollTimeout(poll) {
  if (!poll) return null;
  if (poll.interval_ms !== null) return poll.interval_ms;
  return poll.deadline_at_ms === null || poll.last_poll_at_ms === null ? null : poll.deadline_at_ms - poll.last_poll_at_ms;
}

function story(list, rows, atOf, keyOf, textOf) {
  reconcile(
    list,
    rows,
    keyOf,
    () => make("li", "", make("time"), make("div", "", make("p"), make("p"), make("p"))),
    (item, row) => {
      const at = atOf(row);
      const [time, text] = item.children;
      if (!time.firstChild) {
        time.dateTime = new Date(at).toISOString();
        time.append(clockTime(at), make("small", "", day(at, serverNow())));
      }
      textOf(row).forEach((sentence, index) => {
        say(text.children[index], sentence);
        text.children[index].hidden = sentence === "";
      });
    },
  );
  list.nextElementSibling.hidden = rows.length > 0;
}
