// What the electrocardiogram knows: pulses, lives and rebalances around an instant, and what was so at any instant.
// Pure: answers of the API in, values out; no DOM, no clock.

import { assignmentOf } from "./assignment.js";
import { shortId } from "./words.js";

const CAUSES = [
  "session_expired", "left", "poll_timeout", "rebalance_timeout", "sync_timeout", "join_timeout", "static_replaced",
  "fenced", "removed_by_admin", "group_deleted", "unknown",
];
const TAKEN = new Set(["session_expired", "poll_timeout", "rebalance_timeout", "sync_timeout", "join_timeout", "fenced", "removed_by_admin"]);
const RENEWING = new Set(["heartbeat", "commit", "seen"]); // seen: a health row remembers that it was heard then
const WAITING = new Set(["join", "sync"]);
const SAMPLES_BEFORE_MS = 15_000; // a member in good health is sampled every 5 s
const REBALANCES = 100;
const LIVES = 500;

/** Ask for everything that a picture from `fromMs` to `toMs` shows; `toMs` null: up to now. */
export async function load(ask, links, fromMs, toMs) {
  const from = Math.floor(fromMs);
  const until = toMs === null ? "" : `&to=${Math.ceil(toMs)}`;
  const all = CAUSES.map((cause) => `cause=${cause}`).join("&");
  const [pulse, present, ended, rebalances] = await Promise.all([
    ask(`${links.pulse}?from=${from - SAMPLES_BEFORE_MS}${until}&limit=${LIVES}`),
    ask(`${links.members}?limit=${LIVES}`),
    ask(`${links.evictions}?${all}&from=${from - SAMPLES_BEFORE_MS}&order=oldest&limit=${LIVES}`),
    ask(`${links.rebalances}?limit=${REBALANCES}${until}`),
  ]);
  return {
    lanes: lanes(pulse.members, [...ended.evictions, ...present.members]),
    everybody: [...pulse.members, ...ended.evictions, ...present.members],
    rebalances: rebalances.rebalances,
    archivedToMs: pulse.archived_to_ms,
    reachedMs: pulse.freshness.complete_as_of_ms,
    members: present.members,
  };
}

/** One lane per member id: its lives and its pulse, in the order in which the members came. */
function lanes(pulses, lives) {
  const found = new Map();
  const lane = (one) => {
    const kept = found.get(one.member_id);
    if (kept) return kept;
    const made = { href: one.href, memberId: one.member_id, name: nameOf(one), lives: [], beats: [], polls: [], samples: [], about: null };
    found.set(one.member_id, made);
    return made;
  };
  for (const life of lives) {
    const mine = lane(life);
    mine.about = life;
    mine.lives.push({ fromMs: life.joined_at_ms, toMs: life.ended_at_ms, boundMs: life.at_bound_ms, cause: life.end_cause, reason: life.end_reason, sessionMs: life.session_timeout_ms });
  }
  for (const pulse of pulses) Object.assign(lane(pulse), { beats: pulse.beats, polls: pulse.polls, samples: pulse.samples });
  const first = (one) => Math.min(...one.lives.map((life) => life.fromMs), ...one.samples.slice(0, 1).map((sample) => sample.at_ms));
  return [...found.values()].sort((one, other) => first(one) - first(other) || (one.memberId < other.memberId ? -1 : 1));
}

export function nameOf(member) {
  return member.group_instance_id || member.client_id || member.member_id;
}

/** What tells a member from others of these that have its name, ` (6f6050d6)`; nothing where the name does. */
export function tellApart(members) {
  const ids = new Map();
  for (const one of members) ids.set(nameOf(one), (ids.get(nameOf(one)) ?? new Set()).add(one.member_id));
  return (name, memberId) => ((ids.get(name)?.size ?? 0) > 1 ? ` (${shortId(memberId)})` : "");
}

/** Whether an end took the membership away from one that had not asked to go. */
export function isEviction(cause) {
  return TAKEN.has(cause);
}

/** The last of some sorted by `at_ms` that is not after `atMs`. */
export function latest(sorted, atMs) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle].at_ms <= atMs) low = middle + 1;
    else high = middle;
  }
  return sorted[low - 1] ?? null;
}

/** How a lane stands at an instant: status, and both deadlines as they were known then, or the least that they may have
 * been (`…IsLeast`): a member in good health is written down every few seconds, and heard in between. The API's
 * `renewals` says the same of the past. `archivedToMs`: up to when each request is known; null: of none. */
export function standing(lane, atMs, archivedToMs) {
  const life = lane.lives.find((one) => one.fromMs <= atMs && (one.toMs === null || atMs < one.toMs)) ?? null;
  if (life === null && lane.lives.length) return { present: false, status: lane.lives.some((one) => one.fromMs <= atMs) ? "ended" : "none", sessionAtMs: null, pollAtMs: null };
  const sample = latest(lane.samples, atMs);
  if (sample === null || ["unknown", "unseen", "ended"].includes(sample.shown)) {
    // Who is unseen waits in a JoinGroup, where no timeout runs, or is gone.
    return { present: true, status: sample?.shown === "unseen" ? "unseen" : "unknown", reasons: sample?.reasons ?? [], sessionAtMs: null, pollAtMs: null, assignment: assignmentOf(sample) };
  }
  const after = lane.samples[lane.samples.indexOf(sample) + 1] ?? null;
  const session = sessionAt(lane, sample, after, atMs, archivedToMs);
  const poll = within(after, "poll", atMs) ?? { atMs: sample.poll_deadline_at_ms, isLeast: sample.at_ms < atMs };
  return {
    present: true,
    status: sample.shown === "ok" && isPredicted(lane.about, sample, atMs) ? "late" : sample.shown,
    reasons: sample.reasons,
    sessionAtMs: session.atMs,
    sessionIsLeast: session.isLeast && !isNow(lane.about?.session, session.atMs),
    sessionMs: sample.session_timeout_ms,
    pollAtMs: poll.atMs,
    pollIsLeast: poll.isLeast && !isNow(lane.about?.poll, poll.atMs),
    pollMs: sample.poll_timeout_ms,
    assignment: assignmentOf(sample),
  };
}

/** Whether a timeout was predicted to pass since the row that said that all was well; the API's `shown` says the same. */
function isPredicted(about, sample, atMs) {
  return about?.health_at_ms === sample.at_ms && about.predictions.some((one) => one.predicted_at_ms <= atMs);
}

/** The session's deadline at an instant between two samples. */
function sessionAt(lane, sample, after, atMs, archivedToMs) {
  const remembered = within(after, "session", atMs);
  if (remembered) return remembered;
  if (sample.session_deadline_at_ms === null) return { atMs: null, isLeast: false };
  // A request that was answered well renews the session, whether or not a health row has been written since.
  const beat = latest(lane.beats.filter((one) => RENEWING.has(one.by) && one.error_code === 0), atMs);
  const renewedAtMs = beat && sample.session_timeout_ms ? beat.at_ms + sample.session_timeout_ms : 0;
  const waited = lane.beats.some((one) => WAITING.has(one.by) && one.at_ms > sample.at_ms && one.at_ms <= atMs);
  const isWhole = archivedToMs !== null && archivedToMs > atMs && sample.group_state === "Stable" && !waited;
  return { atMs: Math.max(sample.session_deadline_at_ms, renewedAtMs), isLeast: sample.at_ms < atMs && !isWhole };
}

/** A deadline that the next sample remembers, if what it runs from was before the instant: then nothing came between. */
function within(after, kind, atMs) {
  const deadlineMs = after?.[`${kind}_deadline_at_ms`] ?? null;
  const timeoutMs = after?.[`${kind}_timeout_ms`] ?? null;
  return deadlineMs !== null && timeoutMs !== null && deadlineMs - timeoutMs <= atMs ? { atMs: deadlineMs, isLeast: false } : null;
}

/** Whether it is the deadline that the API says of the present, and that nothing has renewed as far as is read. */
function isNow(deadline, deadlineMs) {
  return deadline != null && deadline.deadline_at_ms === deadlineMs && !deadline.is_least;
}
