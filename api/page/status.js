// The status of a group or a member as a mark and a word. Of a feed that is old it is told as what was.

import { isStale } from "./countdown.js";
import { say } from "./dom.js";

const PASSING = new Set(["ok", "late", "imminent", "overdue", "awaited", "unseen"]); // what may have become something else since

/** What a status is worth now: `unknown` where the feed is old. */
export function worth(status) {
  return isStale() && PASSING.has(status) ? "unknown" : status ?? "none";
}

/** Say the status that stands now; `status` null: there is nobody to have one. */
export function sayStatus(element, status) {
  const shown = worth(status);
  element.className = `status ${shown}`;
  say(element, status === null ? "nobody" : shown === status ? status : `was ${status}`);
}
