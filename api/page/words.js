// Sentences, instants and durations for people. Knows nothing of the DOM.

import { visible } from "./dom.js";

/** Statuses as they are shown, the worst first; the API's `present` says what they mean. */
export const STATUSES = ["overdue", "imminent", "awaited", "late", "unseen", "unknown", "ok"];
const BOUND_SHOWN_MS = 5; // a bound within that is the width of two stamps: nobody need read of it

const TRIGGERS = {
  member_joined: "joined",
  member_left: "left",
  poll_timeout: "stopped polling and gave up its membership",
  session_expired: "fell silent and its session expired",
  pending_expired: "was given an id and never came back with it",
  rebalance_timeout: "did not rejoin in time",
  sync_timeout: "did not sync in time",
  metadata_changed: "changed its subscription",
  leader_rejoined: "is the leader and joined again",
  static_replaced: "came back under its instance id",
  removed_by_admin: "was removed by an administrator",
  assignment_not_stored: "led, and its assignments could not be stored",
  over_capacity: "the loaded group is over capacity",
  coordinator_loaded: "the coordinator loaded the group",
  topic_metadata: "the topics changed",
};
const WITHOUT_MEMBER = new Set(["coordinator_loaded", "topic_metadata"]);

/** `4.2 s`, `1 min 05 s`, `2 h 10 min`; tenths below a minute. */
export function duration(ms) {
  const sign = ms < 0 ? "−" : "";
  const whole = Math.abs(ms);
  if (whole < 60_000) return `${sign}${(Math.floor(whole / 100) / 10).toFixed(1)} s`;
  const seconds = Math.floor(whole / 1000);
  if (seconds < 3600) return `${sign}${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  const hours = Math.floor(seconds / 3600);
  if (hours < 48) return `${sign}${hours} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} min`;
  return `${sign}${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A short wait, to the millisecond where that says something. */
export function span(ms) {
  return ms < 1000 ? `${ms} ms` : duration(ms);
}

/** Clock time to the millisecond, in the reader's zone. */
export function clockTime(atMs) {
  const at = new Date(atMs);
  const two = (number) => String(number).padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** The instants between which something was: a timer of a broker may fire late. `boundMs` null: nothing says how late. */
export function between(atMs, boundMs) {
  if (boundMs === null) return `not before ${clockTime(atMs)}, and nothing that was seen says how much later`;
  return boundMs > BOUND_SHOWN_MS ? `between ${clockTime(atMs)} and ${clockTime(atMs + boundMs)}` : "";
}

/** An instant to stand beside others, with `≥` where it may have been later. */
export function least(atMs, boundMs) {
  return `${boundMs === null || boundMs > BOUND_SHOWN_MS ? "≥ " : ""}${clockTime(atMs)}`;
}

/** What a group counts: groups of the consumer, share and streams protocols have epochs. */
export function unit(protocols) {
  return protocols.some((one) => one !== "classic") ? "epoch" : "generation";
}

/** The reader's zone: `UTC`, `UTC+02:00`. */
export function zone(date) {
  const minutes = -date.getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const two = (number) => String(number).padStart(2, "0");
  return `UTC${minutes < 0 ? "−" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
}

/** The day, unless it is the day of `nowMs`. */
export function day(atMs, nowMs) {
  const date = new Date(atMs).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
  return date === new Date(nowMs).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" }) ? "" : date;
}

const UUID_AT_END = /([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** What tells a member id from others of the same client, as the command line writes it. */
export function shortId(memberId) {
  const found = UUID_AT_END.exec(memberId);
  return found ? found[1] : visible(memberId.length <= 24 ? memberId : `…${memberId.slice(-12)}`);
}

/** What started a rebalance. */
export function cause(rebalance) {
  const epochs = unit([rebalance.protocol ?? "classic"]) === "epoch"; // nobody rejoins there
  const did = epochs && rebalance.trigger === "rebalance_timeout" ? "let its rebalance timeout pass" : TRIGGERS[rebalance.trigger];
  if (!did) return `Started for a reason that is ${visible(rebalance.trigger)}`;
  if (WITHOUT_MEMBER.has(rebalance.trigger)) return did[0].toUpperCase() + did.slice(1);
  const who = rebalance.trigger_group_instance_id || rebalance.trigger_client_id || rebalance.trigger_member_id;
  return `${who === null ? "A member" : visible(who, 60)} ${did}`;
}

/** What a rebalance did and whom it waited for. */
export function course(rebalance, nowMs) {
  const parts = [];
  if (rebalance.running) parts.push(`running for ${duration(Math.max(0, nowMs - rebalance.started_at_ms))}`);
  else parts.push(`took ${span(rebalance.duration_ms)}`);
  const bounds = between(rebalance.started_at_ms, rebalance.at_bound_ms);
  if (bounds) parts.push(`it began ${bounds}`);
  const ended = rebalance.running ? "" : between(rebalance.completed_at_ms, rebalance.completed_bound_ms);
  if (ended) parts.push(`it was over ${ended}`);
  const after = rebalance.generation_after === null ? "…" : rebalance.generation_after;
  parts.push(`${unit([rebalance.protocol ?? "classic"])} ${rebalance.generation_before} → ${after}`);
  if (rebalance.members_before !== null || rebalance.members_after !== null) {
    parts.push(`members ${rebalance.members_before ?? "?"} → ${rebalance.members_after ?? "?"}`);
  }
  const waited = rebalance.stragglers.slice(0, 3).map((one) => {
    const who = visible(one.client_id || one.member_id || "a member", 40);
    const held = one.partitions ? `, ${one.partitions} to give up` : "";
    return `${who} ${span(one.waited_ms ?? 0)}${held}${one.joined === false ? " (never came)" : ""}`;
  });
  if (waited.length) parts.push(`waited for ${waited.join(", ")}`);
  if (rebalance.partitions_moved) parts.push(`${rebalance.partitions_moved} ${rebalance.protocol === "streams" ? "task" : "partition"}${rebalance.partitions_moved === 1 ? "" : "s"} moved`);
  return parts.join(" · ");
}

/** How sure a row is, and why no more: the sentences of its doubts. */
export function sure(row) {
  const why = row.doubts_in_words ?? [];
  return why.length === 0 ? row.certainty : `${row.certainty}: ${why.join("; ")}`;
}

/** `session_expired` as words. */
export function plain(word) {
  return visible(word).replaceAll("_", " ");
}

/** CSS class of a group's state. */
export function stateClass(state) {
  const known = ["stable", "preparingrebalance", "completingrebalance", "empty", "dead"];
  const alike = { assigning: "preparingrebalance", reconciling: "completingrebalance" };
  const lower = alike[state.toLowerCase()] ?? state.toLowerCase();
  return known.includes(lower) ? lower : "other";
}
