// Countdowns that run between two answers: each shows a deadline against the clock of the server, as last heard.

import { make, say } from "./dom.js";
import { duration } from "./words.js";

const MEANING = "≥: at least so long; one in good health is written down every few seconds only. renewed: that time is over, and it has been heard since. –: not known.";
const running = new Set();
let offsetMs = 0;
let stale = true;
let reachedMs = null;
let learnedMs = 0;
const OLD_MS = 20_000; // an answer of every 5 s that takes up to 15 s: whoever hears nothing for longer knows nothing of now

/** Learn the server's clock and whether silence still means anything. */
export function learn(freshness) {
  offsetMs = freshness.answered_at_ms - Date.now();
  learnedMs = performance.now();
  stale = freshness.stale;
  reachedMs = freshness.complete_as_of_ms ?? reachedMs;
}

/** Whether silence may be the feed's: as last heard, or because nothing was heard for long. */
export function isStale() {
  return stale || performance.now() - learnedMs > OLD_MS;
}

/** The server's present instant. */
export function serverNow() {
  return Date.now() + offsetMs;
}

/** The instant up to which something can be said to last: now, or where an old feed ends. */
export function knownNow() {
  return isStale() && reachedMs !== null ? Math.min(reachedMs, serverNow()) : serverNow();
}

/** A labelled countdown; `show` gives it a deadline. */
export function countdown(label) {
  const value = make("b");
  const fill = make("i");
  const element = make("div", "count", make("p", "", make("span", "", label), value), make("span", "bar", fill));
  element.title = MEANING;
  element.countdown = { value, fill, deadlineMs: null, timeoutMs: null, status: "unknown", ratio: null, isLeast: true, atMs: null };
  running.add(element);
  return element;
}

/** Set what a countdown counts down to, from now or from an instant of the past, where it stands still. */
export function show(element, deadline, timeoutMs, status, atMs = null) {
  Object.assign(element.countdown, {
    atMs,
    deadlineMs: deadline?.deadline_at_ms ?? null,
    ratio: deadline?.headroom_ratio ?? null,
    timeoutMs,
    status,
    isLeast: deadline?.is_least ?? true,
  });
  tick(element);
}

function tick(element) {
  const { value, fill, deadlineMs, timeoutMs, status, ratio, isLeast, atMs } = element.countdown;
  const isOld = isStale() && atMs === null;
  const leftMs = deadlineMs === null ? null : deadlineMs - (atMs ?? serverNow());
  const over = leftMs !== null && leftMs <= 0 && !isOld && !isLeast;
  const shown = status === "overdue" ? "ok" : status;
  const className = `count ${leftMs === null ? "unknown" : over ? "overdue" : shown}`;
  if (element.className !== className) element.className = className;
  if (leftMs === null) say(value, "–");
  else if (isOld) say(value, ratio === null ? "feed is old" : `${Math.round(ratio * 100)} % was left`);
  else if (isLeast) say(value, leastLeft(leftMs, deadlineMs <= reachedMs));
  else say(value, over ? `due ${duration(-leftMs)} ago` : duration(leftMs)); // how that ended is not read yet
  const part = isOld ? ratio ?? 0 : timeoutMs ? leftMs / timeoutMs : 0;
  fill.style.transform = `scaleX(${Math.max(0, Math.min(1, part)).toFixed(4)})`;
}

/** What is left of a deadline that may be later: one in good health is written down every few seconds only. `isRead`: all
 * up to the deadline has been read, so that who is still there has been heard since. */
export function leastLeft(leftMs, isRead) {
  if (leftMs > 0) return `≥ ${duration(leftMs)}`;
  return isRead ? "renewed" : "–";
}

setInterval(() => {
  if (document.hidden) return;
  for (const element of running) {
    if (element.isConnected) tick(element);
    else running.delete(element);
  }
}, 100);
