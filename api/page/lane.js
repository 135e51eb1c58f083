// One lane of the electrocardiogram as shapes: the beats, the polls below them, deadlines, waits and ends.

import { isEviction } from "./beats.js";
import { draw } from "./dom.js";
import { between, clockTime, plain, span } from "./words.js";

export const HEIGHT = 62;
const BASE = 30;
const POLL = 50;
const ENDS = { session: "session ends", "until-poll": "poll interval ends", "give-up": "must have given its partitions up by" };

/** Draw a lane into its svg. `x` maps instants to pixels, `atMs` is the playhead, `width` the width of the track. */
export function drawLane(svg, lane, standing, rebalances, x, atMs, width) {
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const seen = lane.beats.filter((beat) => inside(x(beat.at_ms), width));
  svg.dataset.beats = String(seen.filter((beat) => beat.error_code === 0).length);
  const shapes = [];
  for (const life of lane.lives.length ? lane.lives : [{ fromMs: -Infinity, toMs: null }]) shapes.push(...drawLife(life, lane, seen, standing, x, width));
  for (const poll of lane.polls) {
    const at = x(poll.at_ms);
    if (!inside(at, width)) continue;
    const mark = draw("path", { d: pollMark(poll.evidence, at), class: `poll ${poll.evidence === "commit" ? "commit" : ""}` });
    mark.append(draw("title", {}, `${clockTime(poll.at_ms)}: polled, seen by ${plain(poll.evidence)}${poll.error_bound_ms ? `, at most ${span(poll.error_bound_ms)} earlier` : ""}`));
    shapes.push(mark);
  }
  shapes.push(...drawDeadline("session", standing.sessionAtMs, BASE - 6, 12, standing.status, x, atMs, width));
  shapes.push(...drawDeadline("until-poll", standing.pollAtMs, POLL - 3, 6, "ok", x, atMs, width));
  const { assignment } = standing;
  if (assignment?.revoking) shapes.push(...drawDeadline("give-up", assignment.untilMs, BASE + 9, 6, "awaited", x, atMs, width));
  for (const rebalance of rebalances) shapes.push(...drawWait(rebalance, lane, x, width));
  svg.replaceChildren(...shapes);
}

function inside(at, width) {
  return at >= -4 && at <= width + 4;
}

function drawLife(life, lane, seen, standing, x, width) {
  const from = Math.max(-4, x(life.fromMs));
  const to = Math.min(width + 4, life.toMs === null ? width + 4 : x(life.toMs));
  if (to < from) return [];
  const mine = seen.filter((beat) => beat.at_ms >= life.fromMs && (life.toMs === null || beat.at_ms <= life.toMs));
  const last = lane.beats.length ? x(lane.beats[lane.beats.length - 1].at_ms) : from;
  const end = life.toMs === null ? Math.min(to, Math.max(from, last)) : to;
  let line = `M${from.toFixed(1)} ${BASE}`;
  const refused = [];
  for (const beat of mine) {
    const at = x(beat.at_ms);
    if (beat.error_code === 0) line += `L${(at - 4).toFixed(1)} ${BASE}l1.6 3l2.4 -24l2.6 30l1.8 -9`;
    else refused.push(`M${(at - 3).toFixed(1)} ${BASE}l3 -12l3 12`);
  }
  const shapes = [];
  if (life.toMs === null) shapes.push(draw("path", { d: `M${end.toFixed(1)} ${BASE}H${to.toFixed(1)}`, class: "flat" }));
  shapes.push(draw("path", { d: `${line}L${end.toFixed(1)} ${BASE}`, class: `trace ${standing.status}` }));
  if (refused.length) shapes.push(draw("path", { d: refused.join(""), class: "refused" }));
  if (life.fromMs > -Infinity && inside(x(life.fromMs), width)) {
    const start = draw("circle", { cx: from.toFixed(1), cy: BASE, r: 4, class: "joined" });
    start.append(draw("title", {}, `${clockTime(life.fromMs)}: joined`));
    shapes.push(start);
  }
  if (life.toMs !== null && inside(x(life.toMs), width)) shapes.push(...drawEnd(life, to, width));
  return shapes;
}

function drawEnd(life, at, width) {
  const taken = isEviction(life.cause);
  const kind = taken ? "evicted" : life.cause === "unknown" ? "lost" : "left";
  const mark = draw("path", {
    d: taken ? `M${at - 6} ${BASE - 6}l12 12m0 -12l-12 12` : `M${at - 4} ${BASE - 4}h8v8h-8z`,
    class: `end ${kind}`,
  });
  const words = taken ? plain(life.cause) : life.cause === "left" ? "left" : `ended: ${plain(life.cause)}`;
  mark.append(draw("title", {}, `${between(life.toMs, life.boundMs) || clockTime(life.toMs)}: ${taken ? "evicted, " : ""}${words}`));
  const before = at > width - 130;
  const label = draw("text", { x: (at + (before ? -11 : 11)).toFixed(1), y: BASE + 4, class: `ends ${kind}`, "text-anchor": before ? "end" : "start" }, words);
  return [mark, label];
}

function pollMark(evidence, at) {
  const left = at.toFixed(1);
  return evidence === "commit" ? `M${left} ${POLL - 4}l4 4l-4 4l-4 -4z` : `M${left} ${POLL - 4}v8`;
}

/** A bar from the playhead to the deadline: it shrinks as the one nears the other. */
function drawDeadline(kind, deadlineMs, y, height, status, x, atMs, width) {
  if (deadlineMs === null || deadlineMs <= atMs) return [];
  const from = x(atMs);
  const to = Math.min(width, x(deadlineMs));
  const bar = draw("rect", { x: from.toFixed(1), y, width: Math.max(0, to - from).toFixed(1), height, class: `deadline ${kind} ${status}` });
  bar.append(draw("title", {}, `${ENDS[kind]} ${clockTime(deadlineMs)}`));
  const cap = draw("path", { d: x(deadlineMs) <= width ? `M${to.toFixed(1)} ${y - 4}v${height + 8}` : `M${width - 8} ${y}l6 ${height / 2}l-6 ${height / 2}`, class: `cap ${kind} ${status}` });
  return [bar, cap];
}

function drawWait(rebalance, lane, x, width) {
  const wait = rebalance.stragglers.find((one) => one.member_id === lane.memberId);
  if (!wait?.waited_ms) return [];
  const from = Math.max(0, x(rebalance.started_at_ms));
  const to = Math.min(width, x(rebalance.started_at_ms + wait.waited_ms));
  if (to <= from) return [];
  const bar = draw("rect", { x: from.toFixed(1), y: 4, width: (to - from).toFixed(1), height: HEIGHT - 8, rx: 4, class: "straggler" });
  const words = `the group waited ${span(wait.waited_ms)} for it${wait.joined === false ? ", it never came" : ""}`;
  bar.append(draw("title", {}, words));
  const label = draw("text", { x: (from + 5).toFixed(1), y: 14, class: "waited" }, to - from > 90 ? `waited ${span(wait.waited_ms)}` : "");
  return [bar, label];
}
