// What cannot wait: whose timeout is about to strike, and which groups rebalance, since when and for whom.

import { to } from "./address.js";
import { nameOf } from "./beats.js";
import { countdown, knownNow, serverNow, show } from "./countdown.js";
import { id, make, reconcile, say, visible } from "./dom.js";
import { dueOf, sayStatus } from "./status.js";
import { cause, duration, stateClass } from "./words.js";

const SHOWN = 8; // of each kind; the groups below are sorted by the same
const ASKED = 200; // most deadlines are renewed in time; those that are not expected to be stand among the first
const FULL_MS = 30_000; // one scale for all bars: what is full has half a minute left, or more
const ENDS = { session: "session ends", poll: "poll interval ends", rebalance: "rebalance timeout ends" };

/** Ask a cluster for both. */
export async function danger(ask, cluster) {
  const [next, open] = await Promise.all([
    ask(`${cluster.links.next_evictions}?limit=${ASKED}`),
    ask(`${cluster.links.open_rebalances}?limit=${ASKED}`),
  ]);
  return { next: next.next_evictions.filter((one) => one.predicted), open: open.open_rebalances, leftOff: open.left_off };
}

/** The rebalance under way of one group, or null; `found` is the group. */
export async function openRebalance(ask, found) {
  if (!isRebalancing(found)) return null;
  const answer = await ask(`${found.href.replace(/\/groups\/[^/]*$/, "/open-rebalances")}?limit=1000`);
  return answer.open_rebalances.find((one) => one.href === found.href) ?? null;
}

export function isRebalancing(group) {
  return ["preparingrebalance", "completingrebalance"].includes(stateClass(group.state));
}

/** The two cards; `update` takes what `danger` found in all clusters. */
export function now() {
  const next = make("ul", "rows next");
  const open = make("ul", "rows open");
  const root = [
    make("section", "card", make("h2", "", "Next to be evicted"), next, make("p", "empty")),
    make("section", "card", make("h2", "", "Rebalancing"), open, make("p", "empty")),
  ];
  for (const section of root) section.hidden = true; // until something is to be said
  return {
    root,
    update: (found) => {
      const evictions = found.flatMap((one) => one.next).sort((one, other) => one.deadline_at_ms - other.deadline_at_ms);
      const rebalances = found.flatMap((one) => one.open).sort((one, other) => one.since_at_ms - other.since_at_ms);
      const leftOff = found.reduce((sum, one) => sum + one.leftOff, 0);
      reconcile(next, evictions.slice(0, SHOWN), (one) => `${one.kind}/${one.href}`, createNext, updateNext);
      reconcile(open, rebalances.slice(0, SHOWN), (one) => one.href, createOpen, updateOpen);
      fold(root[0], evictions.length);
      fold(root[1], rebalances.length + leftOff);
    },
  };
}

function fold(section, count) {
  section.hidden = count === 0;
  const more = section.lastChild;
  say(more, count > SHOWN ? `and ${count - SHOWN} more` : "");
  more.hidden = count <= SHOWN;
}

function link(href, text) {
  const element = make("a", "", id(text));
  element.href = to(href);
  return element;
}

function createNext(one) {
  return make(
    "li",
    "",
    make("p", "name", link(one.href, nameOf(one)), make("span", "soft", " in "), link(one.href.replace(/\/members\/[^/]*$/, ""), one.group_id)),
    make("span", "status"),
    countdown(ENDS[one.kind] ?? one.kind),
  );
}

function updateNext(row, one) {
  const [, status, left] = row.children;
  sayStatus(status, one.shown, null, dueOf(one));
  const known = one.shown !== "unseen" || one.kind === "rebalance";
  show(left, known ? { deadline_at_ms: one.deadline_at_ms, headroom_ratio: null, is_least: one.is_least } : null, FULL_MS, one.shown);
}

function createOpen(one) {
  return make("li", "", make("p", "name", link(one.href, one.group_id)), make("span", `chip ${stateClass(one.state)}`), make("p", "soft"));
}

function updateOpen(row, one) {
  row.children[1].className = `chip ${stateClass(one.state)}`;
  say(row.children[1], one.state);
  say(row.children[2], underWay(one));
}

/** A rebalance under way in words: how long, why as far as that is known, for whom, and until when at the latest. */
export function underWay(one) {
  const since = `for ${duration(Math.max(0, knownNow() - one.since_at_ms))}`;
  const unknown = one.state === "PreparingRebalance" ? "its cause is known when its first JoinGroup is answered" : "its cause is not known yet";
  const why = one.trigger === null ? unknown : "";
  const names = one.waits_for.map((other) => `${visible(other.client_id || other.member_id, 40)}${other.pending ? " (an id that nobody has used)" : ""}`);
  const whom = names.length ? `waits for ${names.slice(0, 3).join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}` : "nobody is known to be missing";
  const ends = one.waits_for.map((other) => other.until_at_ms);
  const ownMs = ends.length && !ends.includes(null) ? Math.max(...ends) : null; // with epochs each member has its own time
  const endMs = one.ends_at_latest_at_ms ?? ownMs;
  const leftMs = endMs === null ? null : endMs - serverNow();
  const until = leftMs === null || leftMs <= 0 ? "" : `goes on without them in ${duration(leftMs)} at the latest`;
  const joined = one.joining.length ? `${one.joining.slice(0, 3).map((other) => visible(other.client_id || other.member_id, 40)).join(", ")}${one.joining.length > 3 ? ` and ${one.joining.length - 3} more` : ""} joined` : "";
  return [since, joined, whom, until, why].filter(Boolean).join(" · ");
}

/** What a group's row says of its rebalances: the one under way, or the last. */
export function lastOf(group, open) {
  if (open) return `Rebalancing ${underWay(open)}.`;
  const last = group.last_rebalance;
  if (isRebalancing(group) && group.state_since_at_ms !== null) return `Rebalancing for ${duration(Math.max(0, knownNow() - group.state_since_at_ms))}.`;
  if (!last) return "";
  if (last.running) return `Rebalancing for ${duration(Math.max(0, knownNow() - last.started_at_ms))}: ${cause(last)}.`;
  return `Last rebalance ${duration(serverNow() - last.completed_at_ms)} ago: ${cause(last)}.`;
}
