// The status of a group or a member as a mark and a word. Of a feed that is old it is told as what was.

import { isStale } from "./countdown.js";
import { say } from "./dom.js";

const PASSING = new Set(["ok", "late", "imminent", "overdue", "awaited", "unseen"]); // what may have become something else since

const ARCHIVE_MS = 3_600_000; // a job that is down for a while comes back sooner

/** Whether nobody writes these tables any more: of an archive people ask what happened, not what is so. */
export function isArchive(freshness) {
  return freshness.stale && (freshness.age_ms ?? 0) > ARCHIVE_MS;
}

/** What a status is worth now: `unknown` where the feed is old. */
export function worth(status) {
  return isStale() && PASSING.has(status) ? "unknown" : status ?? "none";
}

/** Say the status that stands now, or that stood at an instant, which does not age; null: there is nobody to have one. */
export function sayStatus(element, status, atMs = null) {
  const shown = atMs === null ? worth(status) : status ?? "none";
  element.className = `status ${shown}`;
  say(element, status === null ? "nobody" : shown === status ? status : `was ${status}`);
}
