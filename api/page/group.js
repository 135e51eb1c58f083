// One group: its state over time, its members with both countdowns, what happened to it and why.

import { to } from "./address.js";
import { Refusal } from "./ask.js";
import { band } from "./band.js";
import { nameOf, tellApart } from "./beats.js";
import { countdown, isStale, knownNow, learn, serverNow, show } from "./countdown.js";
import { ecg } from "./ecg.js";
import { id, make, reconcile, say, visible } from "./dom.js";
import { lag } from "./lag.js";
import { openRebalance, underWay } from "./now.js";
import { report } from "./report.js";
import { dueOf, dueOfGroup, sayStatus } from "./status.js";
import { story } from "./story.js";
import { sentences } from "./why.js";
import { STATUSES, between, cause, clockTime, course, day, duration, plain, stateClass, sure, unit } from "./words.js";

const REQUEST_LOG_RUNG = 5;
const ROWS = 50;
const BAND_ROWS = 500;
const MEMBERS = 500;

/** The view of the group at an API path, standing at an instant if one is given, with the report of a stretch open. */
export function group(path, { atMs, fromMs, toMs }) {
  const title = make("h1");
  const facts = make("p", "facts");
  const open = make("p", "soft open");
  const rung = make("details", "soft rung", make("summary"), make("p"));
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
  const reasons = sentences("Why", (atMs) => `${links.why}${atMs === null ? "" : `?at=${atMs}`}`, (answer) => answer.sentences);
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
      make("div", "about", make("div", "", title, facts, beyond, open), ticket.open),
      rung,
      ticket.root,
      reasons.root,
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
      const standsAtMs = heart.isLive() ? null : Math.floor(heart.atMs());
      const until = standsAtMs === null ? "" : `&to=${standsAtMs + 1}`;
      const happened = (bound) => Promise.all([ask(`${links.rebalances}?limit=${ROWS}${bound}`), ask(`${links.evictions}?limit=${ROWS}${bound}`)]);
      const ever = happened("");
      const [known, then, open, [past, taken], [begun, ended], changes, bandChanges, lagThen, told] = await Promise.all([
        heart.questions(ask, links, first.freshness, oldestMs),
        standsAtMs === null ? null : asItWas(ask, first.group, standsAtMs),
        openRebalance(ask, first.group),
        ever,
        until ? happened(until) : ever,
        ask(`${links.history}?limit=${ROWS}${until}`),
        ask(`${links.history}?entity=group&limit=${BAND_ROWS}${until}`),
        behind.questions(ask, links, standsAtMs),
        reasons.questions(ask, standsAtMs),
      ]);
      return {
        freshness: first.freshness,
        group: first.group,
        evidence: first.evidence,
        then,
        open,
        members: then === null ? known.members : then.members,
        known,
        oldestMs,
        events: [...past.rebalances.map((one) => one.started_at_ms), ...taken.evictions.map((one) => one.ended_at_ms)],
        rebalances: begun.rebalances.map((one) => asOf(one, standsAtMs)),
        evictions: ended.evictions,
        history: changes.transitions,
        lag: lagThen,
        told,
        band: { changes: bandChanges.transitions, evictions: ended.evictions },
      };
    },
    update: (answer) => {
      update(parts, answer);
      say(beyond, beyondKnown(asked, answer.freshness.complete_as_of_ms));
      reasons.update(answer.told);
      const missing = lacking(answer.evidence);
      rung.hidden = answer.then !== null || missing === null; // what is read is of now
      if (missing) [...rung.children].forEach((part, index) => say(part, missing[index]));
    },
  };
  return view;
}

/** The group and its members at an instant; nobody and nothing, if that is before anything is known of it. */
async function asItWas(ask, { href, links }, atMs) {
  try {
    const [then, there] = await Promise.all([ask(`${href}?at=${atMs}`), ask(`${links.members}?at=${atMs}&limit=${MEMBERS}`)]);
    return { atMs, group: then.group, members: there.members };
  } catch (error) {
    // The slider may stand a moment ahead of what has been read: that is said, and asked again with the next batch.
    if (error instanceof Refusal && (error.status === 404 || error.code === "beyond_complete")) return { atMs, group: null, members: [] };
    throw error;
  }
}

/** A rebalance as it was at an instant: one that was over later was under way. */
function asOf(one, atMs) {
  if (atMs === null || one.completed_at_ms === null || one.completed_at_ms <= atMs) return one;
  return { ...one, running: true, completed_at_ms: null, generation_after: null, members_after: null, stragglers: [], partitions_moved: null };
}

/** What is read of the group's broker, in a line and at length; null where everything can be asked. */
function lacking({ read, rung, questions }) {
  const asked = (needs) => questions.filter((one) => one.needs === needs).map(({ question }) => `“${question}”`);
  const open = questions.filter((one) => one.needs);
  if (!open.length) return null;
  const needs = [...new Set(open.map((one) => one.needs))];
  return [
    `Evidence: ${read}${rung < REQUEST_LOG_RUNG ? " only" : ""} (level ${rung} of 6); ${open.length} question${open.length === 1 ? " needs" : "s need"} more`,
    needs.map((one) => `${asked(one).join(", ")} ${one}.`).join(" "),
  ];
}

/** What is said where somebody asks about an instant that has not been read yet; the API refuses it in the same words. */
function beyondKnown(askedMs, reachedMs) {
  if (askedMs === null || (reachedMs !== null && askedMs <= reachedMs)) return "";
  if (reachedMs === null) return "Nothing has been read yet.";
  const instant = (atMs) => `${day(atMs, serverNow())} ${clockTime(atMs)}`.trim();
  return `Nothing is known beyond ${instant(reachedMs)}, so nothing of ${instant(askedMs)}. What follows is as far as is known.`;
}

function update(parts, { known, oldestMs, freshness, group: found, then, open, members, events, rebalances, evictions, history, band: states, lag: lagThen }) {
  const atMs = then?.atMs ?? null;
  parts.behind.update(lagThen, found?.protocols ?? []);
  if (!parts.title.firstChild) parts.title.append(id(found.group_id));
  updateFacts(parts.facts, then === null ? found : then.group, atMs);
  say(parts.open, then === null && open !== null ? `Rebalancing ${underWay(open)}.` : "");
  say(parts.present, atMs === null ? "Members" : `Members at ${clockTime(atMs)}`);
  const apart = tellApart([...known.everybody, ...members, ...evictions]);
  parts.heart.update(known, oldestMs, events, apart);
  const readMs = freshness.complete_as_of_ms ?? freshness.answered_at_ms;
  parts.states.update(states.changes, states.evictions, parts.heart.isLive() ? readMs : Math.min(readMs, parts.heart.atMs()));
  const rank = (member) => STATUSES.indexOf(member.shown);
  const ranked = [...members].sort((one, other) => rank(one) - rank(other) || (nameOf(one) < nameOf(other) ? -1 : 1));
  reconcile(parts.members, ranked, (member) => member.href, createMember, (row, member) => updateMember(row, member, apart(nameOf(member), member.member_id), atMs));
  parts.nobody.hidden = members.length > 0;
  story(parts.rebalances, rebalances, (one) => one.started_at_ms, (one) => one.started_at_ms + "/" + one.generation_before, (one) => [
    `${cause(one)}.`,
    course(one, atMs ?? serverNow()),
    one.reason ? `“${visible(one.reason, 200)}”` : "",
  ]);
  story(parts.evictions, evictions, (one) => one.ended_at_ms, (one) => `${one.href}/${one.joined_at_ms}`, (one) => [
    `${visible(nameOf(one), 80)}${apart(nameOf(one), one.member_id)}: ${plain(one.end_cause)}.`,
    `was a member for ${duration(one.lived_ms)} · ${sure(one)}${ended(one)}${one.client_host ? ` · ${visible(one.client_host)}` : ""}`,
    [one.end_reason ? `“${visible(one.end_reason, 200)}”` : "", one.fault ? `broken by: ${plain(one.fault)} (${one.fault_certainty})` : ""]
      .filter((text) => text !== "").join(" · "),
  ]);
  const inTime = [...history].sort((one, other) => other.at_ms - one.at_ms || other.seq - one.seq);
  story(parts.history, inTime, (one) => one.at_ms, (one) => String(one.seq), (one) => [
    `${one.entity === "group" ? "Group" : visible(one.member_id ?? "a member", 80)}: ${one.from_state === one.to_state ? `stays ${plain(one.to_state)}` : `${plain(one.from_state)} → ${plain(one.to_state)}`}`,
    `${plain(one.cause)} · ${sure(one)}${within(one.at_ms, one.at_bound_ms)}${one.generation_id === null ? "" : ` · ${unit(found.protocols)} ${one.generation_id}`}`,
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
  sayStatus(status, found === null ? "unknown" : found.shown, atMs, found === null ? null : dueOfGroup(found));
  if (found === null) say(status, "not known yet");
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
  return make(
    "li",
    "",
    make("div", "", make("p", "name", make("a", "", id(nameOf(member), "", 80)), make("span", "soft")), make("p", "soft mono", id(member.member_id, "", 60)), make("p", "soft wide", aboutClient(member))),
    make("div", "verdict", make("span", "status"), make("p", "soft")),
    countdown("session"),
    countdown("poll"),
    make("p", "wide soft"),
  );
}

/** What a member runs, and where. */
export function aboutClient(member) {
  const library = [member.client_software_name, member.client_software_version].filter(Boolean).join(" ");
  return [member.group_instance_id ? "static" : "", library, member.client_host ?? ""].filter(Boolean).map((one) => visible(one, 60)).join(" · ");
}

function updateMember(row, member, apart, atMs) {
  const [head, verdict, session, poll, reasons] = row.children;
  const [link, other] = head.firstChild.children;
  link.href = to(member.href, atMs);
  say(other, apart);
  const [status, heard] = verdict.children;
  sayStatus(status, member.shown, atMs, dueOfTrouble(member));
  say(heard, pollsSeen(member));
  showDeadlines(session, poll, member, atMs);
  say(reasons, member.reasons.map((one) => plain(one)).join(" · "));
  reasons.hidden = member.reasons.length === 0;
}

/** By what a member is seen to poll. */
export function pollsSeen(member) {
  const polls = member.poll?.evidence;
  return polls === "none" ? "no poll seen" : polls ? `polls seen by ${plain(polls)}` : "";
}

/** Both countdowns of a member, now (`atMs` null) or then. */
export function showDeadlines(session, poll, member, atMs) {
  const trouble = troubled(member);
  const runs = member.shown !== "unseen"; // who waits in a JoinGroup has no timeout; whether it does is not seen yet
  show(session, runs ? member.session : null, member.session?.timeout_ms ?? null, trouble.has("session") ? member.shown : "ok", atMs);
  show(poll, runs ? member.poll : null, pollTimeout(member.poll), trouble.has("poll") ? member.shown : "ok", atMs);
}

/** The status is the member's; only the deadline that it is about raises the alarm: the predicted one, or the nearer. */
function troubled(member) {
  if (["ok", "awaited", "unseen", "unknown", "ended"].includes(member.shown)) return new Set();
  if (member.predictions.length) return new Set(member.predictions.map((one) => one.kind));
  const left = (deadline) => deadline?.headroom_ratio ?? Infinity;
  return new Set([left(member.poll) < left(member.session) ? "poll" : "session"]);
}

/** The deadline that a member's status is about. */
export function dueOfTrouble(member) {
  return dueOf(...[...troubled(member)].map((kind) => member[kind]));
}

function pollTimeout(poll) {
  if (!poll) return null;
  if (poll.interval_ms !== null) return poll.interval_ms;
  return poll.deadline_at_ms === null || poll.last_poll_at_ms === null ? null : poll.deadline_at_ms - poll.last_poll_at_ms;
}
