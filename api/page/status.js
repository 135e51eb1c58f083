// The status of a group or a member as a mark and a word. Of a feed that is old it is told as what was.

import { isStale, serverNow } from "./countdown.js";
import { say } from "./dom.js";

const PASSING = new Set(["ok", "late", "imminent", "overdue", "awaited", "unseen"]); // what may have become something else since

const COMING = new Set(["late", "imminent"]); // of a deadline that is still to come
const AGAIN_MS = 250;
const said = new Map(); // element -> what it was told last; what was true then need not be now

const ARCHIVE_MS = 3_600_000; // a job that is down for a while comes back sooner

/** Whether nobody writes these tables any more: of an archive people ask what happened, not what is so. */
export function isArchive(freshness) {
  return freshness.stale && (freshness.age_ms ?? 0) > ARCHIVE_MS;
}

/** What a status is worth now: `unknown` where the feed is old. */
export function worth(status) {
  return isStale() && PASSING.has(status) ? "unknown" : status ?? "none";
}

/** Say the status that stands now, or that stood at an instant, which does not age; null: there is nobody to have one.
 * `dueMs` is the deadline that a status of now is about: when it has passed, nothing is near any more, and how that ended
 * is known with a later answer. */
export function sayStatus(element, status, atMs = null, dueMs = null) {
  if (atMs === null) said.set(element, { status, dueMs });
  else said.delete(element);
  tell(element, status, atMs, dueMs);
}

function tell(element, status, atMs, dueMs) {
  const isOver = atMs === null && past(status, dueMs, serverNow());
  const shown = isOver ? "unknown" : atMs === null ? worth(status) : status ?? "none";
  const className = `status ${shown}`;
  if (element.className !== className) element.className = className;
  say(element, status === null ? "nobody" : shown === status ? status : `was ${status}`);
}

/** The deadline that a status is about, of some deadlines of an answer; null where it may have been renewed since. */
export function dueOf(...deadlines) {
  const known = deadlines.filter((one) => one && one.deadline_at_ms !== null && !one.is_least).map((one) => one.deadline_at_ms);
  return known.length ? Math.min(...known) : null;
}

/** The deadline that the status of a group is about: of those that come next, the one whose member has that status. */
export function dueOfGroup(group) {
  return dueOf(...[group.next_session_deadline, group.next_poll_deadline].filter((one) => one?.status === group.shown));
}

/** A status at an instant of which a deadline is known, which had passed then: nothing was near any more. */
export function past(status, dueMs, atMs) {
  return COMING.has(status) && dueMs !== null && dueMs <= atMs;
}

setInterval(() => {
  if (document.hidden) return;
  for (const [element, { status, dueMs }] of said) {
    if (element.isConnected) tell(element, status, null, dueMs);
    else said.delete(element);
  }
}, AGAIN_MS);
