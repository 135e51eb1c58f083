// One member: who it is, its deadlines, its lane, its lives, and what happened to it.

import { to } from "./address.js";
import { nameOf, tellApart } from "./beats.js";
import { countdown, learn, serverNow } from "./countdown.js";
import { id, make, say, visible } from "./dom.js";
import { ecg } from "./ecg.js";
import { aboutClient, dueOfTrouble, pollsSeen, showDeadlines } from "./group.js";
import { sayStatus } from "./status.js";
import { story } from "./story.js";
import { sentences } from "./why.js";
import { between, clockTime, duration, plain, sure } from "./words.js";

const MEMBERS = 1000;
const AROUND_MS = 60_000; // before it joined and after it went
const BACK_MS = 3_600_000; // of its story

/** The view of the member at an API path, standing at an instant if one is given. */
export function member(path, { atMs: firstMs }) {
  const title = make("h1");
  const facts = make("p", "facts", make("b"), make("span", "status"), make("span"), make("a"));
  const who = make("p", "soft mono");
  const client = make("p", "soft");
  const polls = make("p", "soft");
  const deadlines = [countdown("session"), countdown("poll")];
  const both = make("section", "card deadlines", make("h2", "", "Deadlines"), make("div", "pair", ...deadlines), polls);
  const heart = ecg(() => view.onNeed(), (atMs) => view.onStand(atMs), firstMs);
  const lives = make("ol", "story");
  let about = null; // the latest life, its group and how far it is read
  const told = sentences("What happened to it", (atMs) => pathOf(about, atMs), ({ timeline }) => timeline.filter((one) => one.member_ids.includes(about.life.member_id)));
  const view = {
    onNeed: () => {},
    onStand: () => {},
    loading: "Loading the member …",
    root: [
      make("div", "about", make("div", "", title, facts, who, client)),
      both,
      heart.root,
      told.root,
      make("section", "card", make("h2", "", "Its lives"), lives, make("p", "empty", "None by then.")),
    ],
    questions: async (ask) => {
      const found = await ask(path);
      learn(found.freshness);
      const { group } = await ask(found.member.href.replace(/\/members\/[^/]*$/, ""));
      about = { life: found.member, group, reachedMs: found.freshness.complete_as_of_ms ?? found.freshness.answered_at_ms };
      const oldestMs = Math.min(...found.lives.map((one) => one.joined_at_ms));
      const atMs = heart.isLive() ? null : Math.floor(heart.atMs());
      const [known, there, happened] = await Promise.all([
        heart.questions(ask, group.links, found.freshness, oldestMs),
        atMs === null ? null : ask(`${group.links.members}?at=${atMs}&limit=${MEMBERS}`),
        told.questions(ask, atMs),
      ]);
      const then = atMs === null ? null : { atMs, member: there.members.find((one) => one.member_id === found.member.member_id) ?? null };
      return { ...found, group, then, known: { ...known, only: found.member.member_id }, oldestMs, happened, called: nameOf(found.member) };
    },
    update: ({ member: latest, lives: all, group, then, known, oldestMs, happened }) => {
      const atMs = then?.atMs ?? null;
      const shown = then === null ? latest : then.member;
      if (!title.firstChild) title.append(id(nameOf(latest)), make("span", "soft"));
      say(title.lastChild, tellApart([...known.everybody, latest])(nameOf(latest), latest.member_id));
      const [when, status, since, of] = facts.children;
      say(when, atMs === null ? "" : `at ${clockTime(atMs)}`);
      sayStatus(status, shown === null ? "none" : shown.shown, atMs, shown === null ? null : dueOfTrouble(shown));
      if (shown === null) say(status, "no member then");
      say(since, shown === null ? "" : standing(shown, atMs));
      of.href = to(group.href, atMs);
      say(of, `group ${visible(group.group_id, 60)}`);
      say(who, visible(latest.member_id, 500));
      say(client, [aboutClient(latest), `${latest.protocol} protocol`, timeouts(latest)].filter(Boolean).join(" · "));
      both.hidden = shown === null || shown.shown === "ended";
      if (!both.hidden) {
        showDeadlines(...deadlines, shown, atMs);
        say(polls, [pollsSeen(shown), ...shown.reasons.map(plain)].filter(Boolean).join(" · "));
      }
      heart.update(known, oldestMs, all.flatMap((one) => [one.joined_at_ms, one.ended_at_ms]).filter((one) => one !== null));
      told.update(happened);
      const begun = all.filter((one) => atMs === null || one.joined_at_ms <= atMs);
      story(lives, begun, (one) => one.joined_at_ms, (one) => String(one.joined_at_ms), (one) => lifeOf(one, atMs));
    },
  };
  return view;
}

/** The stretch of time whose story is told: its latest life with a minute around it, of the last hour of it. */
function pathOf({ life, group, reachedMs }, atMs) {
  const lastMs = atMs ?? (life.ended_at_ms === null ? reachedMs : Math.min(reachedMs, life.ended_at_ms + AROUND_MS));
  const fromMs = Math.max(0, lastMs - BACK_MS, Math.min(lastMs, life.joined_at_ms - AROUND_MS));
  return `${group.links.incident}?from=${fromMs}&to=${lastMs + 1}&limit=200`;
}

function standing(one, atMs) {
  if (one.ended_at_ms !== null && (atMs === null || one.ended_at_ms <= atMs)) return `${plain(one.end_cause)} at ${clockTime(one.ended_at_ms)}`;
  return `a member for ${duration((atMs ?? serverNow()) - one.joined_at_ms)}`;
}

function timeouts(one) {
  return [["session timeout", one.session_timeout_ms], ["rebalance timeout", one.rebalance_timeout_ms]]
    .filter(([, ms]) => ms !== null)
    .map(([name, ms]) => `${name} ${duration(ms)}`)
    .join(" · ");
}

/** A life in sentences; one that ended after the instant was not over then. */
function lifeOf(one, atMs) {
  if (one.ended_at_ms === null || (atMs !== null && one.ended_at_ms > atMs)) return ["Joined, and was a member since.", "", ""];
  const bounds = between(one.ended_at_ms, one.at_bound_ms) || `at ${clockTime(one.ended_at_ms)}`;
  return [
    `Joined, and was a member for ${duration(one.ended_at_ms - one.joined_at_ms)}.`,
    `Ended ${bounds}: ${plain(one.end_cause)} · ${sure(one)}`,
    one.end_reason ? `“${visible(one.end_reason, 200)}”` : "",
  ];
}
