// The electrocardiogram of a group: a lane per member, rebalances as bands across all of them, and a playhead.
// Left of the playhead is what had been, right of it what was due; in the past, faintly, also what came.

import { to } from "./address.js";
import { sentence } from "./assignment.js";
import { load, standing, tellApart } from "./beats.js";
import { causePanel } from "./cause.js";
import { leastLeft, serverNow } from "./countdown.js";
import { draw, id, make, reconcile, say, visible } from "./dom.js";
import { drawLane } from "./lane.js";
import { dueOf, past } from "./status.js";
import { timeScale } from "./time_scale.js";
import { transport } from "./transport.js";
import { clockTime, duration, span, unit } from "./words.js";

const WINDOWS = [["30 s", 30_000], ["1 min", 60_000], ["5 min", 300_000], ["30 min", 1_800_000]];
const AHEAD = 0.25; // part of the width that lies after the playhead
const LANES_MAX = 60;
const PILL = 60; // width of such a button
const RULER = 46; // times of day, and below them one button per rebalance
const KEY = [
  ["beat", "∿", "request that renewed the session"],
  ["rejoin", "∧", "told to rejoin"],
  ["poll-key", "◆", "commit"],
  ["poll-key", "|", "other evidence of a poll"],
  ["taken", "✖", "evicted"],
  ["", "■", "left"],
  ["", "▬", "what it must give up, until then"],
  ["", "▮", "right of the line: what is left of session and poll interval"],
];
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * Made once; `questions` asks for what it shows, `update` takes the answer. `onNeed` asks for another turn, `onStand` is
 * told where the slider was put (null: live). It begins at `firstMs`, or live if that is null.
 */
export function ecg(onNeed, onStand, firstMs) {
  const back = draw("svg", { class: "back", "aria-hidden": "true" });
  const whys = make("div", "whys");
  const lanes = make("ul", "lanes");
  const measure = make("div", "measure");
  const note = make("p", "soft note");
  const key = make("p", "soft key", ...KEY.map(([className, sign, words]) => make("span", "", make("b", className, sign), ` ${words}`)));
  const empty = make("p", "empty", "No member was there at this time.");
  const chart = make("div", "chart", back, measure, whys, lanes);
  const state = { widthMs: WINDOWS[innerWidth <= 700 ? 0 : 1][1], known: { lanes: [], everybody: [], rebalances: [], archivedToMs: null, reachedMs: null }, apart: () => "", endMs: null, picked: null, paintedMs: 0 };
  const panel = causePanel(() => {
    const left = state.picked;
    state.picked = null;
    panel.hide();
    [...whys.children].find((one) => one.dataset.key === left)?.focus();
    paint();
  });
  let asking = 0;
  const time = transport(() => {
    paint();
    clearTimeout(asking);
    asking = setTimeout(() => {
      onStand(time.isLive() ? null : Math.floor(time.atMs()));
      onNeed();
    }, 120);
  }, firstMs);
  const switches = WINDOWS.map(([label, ms]) => {
    const element = make("button", "quiet", label);
    element.type = "button";
    element.addEventListener("click", () => {
      state.widthMs = ms;
      onNeed();
      paint();
    });
    return element;
  });
  const pick = (rebalance, focus) => {
    state.picked = keyOf(rebalance);
    panel.show(rebalance, serverNow(), focus);
    paint();
  };

  const range = () => ({ fromMs: time.atMs() - state.widthMs * (1 - AHEAD), toMs: time.atMs() + state.widthMs * AHEAD });

  function paint() {
    const width = measure.clientWidth;
    if (!width) return;
    state.paintedMs = performance.now();
    time.tell();
    switches.forEach((one, index) => one.setAttribute("aria-pressed", String(WINDOWS[index][1] === state.widthMs)));
    const { fromMs, toMs } = range();
    const atMs = time.atMs();
    const x = timeScale(fromMs, toMs, width);
    // Samples are asked for from a while before, so that the left edge is known: whose life ended there is not shown.
    const isThere = (life) => life.fromMs <= toMs && (life.toMs === null || life.toMs >= fromMs);
    const mine = state.known.lanes.filter((lane) => [undefined, lane.memberId].includes(state.known.only));
    const shown = mine.filter((lane) => (lane.lives.length ? lane.lives.some(isThere) : lane.samples.length));
    const ranked = shown.slice(0, LANES_MAX);
    const now = new Map(ranked.map((lane) => [lane.memberId, standing(lane, atMs, state.known.archivedToMs)]));
    reconcile(lanes, ranked, (lane) => lane.href, createLane, (item, lane) => {
      lead(item, to(lane.href, time.isLive() ? null : Math.floor(atMs)), state.apart(lane.name, lane.memberId));
      updateLane(item, lane, now.get(lane.memberId), state.known, x, atMs, width);
      updateAssignment(item, lane, now, (one) => visible(one.name, 40) + state.apart(one.name, one.memberId), state.known.lanes);
    });
    empty.hidden = shown.length > 0;
    const inside = state.known.rebalances.filter((one) => one.started_at_ms <= toMs && (one.completed_at_ms ?? serverNow()) >= fromMs).reverse();
    paintBack(back, inside, x, atMs, width, chart.clientHeight, state.picked, time.isLive());
    const places = inside.map((one) => Math.max(0, Math.min(width - PILL, x(one.started_at_ms))));
    reconcile(whys, inside, keyOf, (one) => createWhy(one, () => pick(state.known.rebalances.find((other) => keyOf(other) === keyOf(one)) ?? one, true)), (item, one) => {
      const place = inside.indexOf(one);
      item.style.left = `${places[place]}px`;
      item.setAttribute("aria-pressed", String(state.picked === keyOf(one)));
      // Where the next one would cover it, the sign alone has to do; its name is in its label.
      const crowded = place + 1 < places.length && places[place + 1] - places[place] < PILL;
      say(item, crowded ? "⟳" : `⟳ ${one.generation_before}→${one.generation_after ?? "…"}`);
    });
    say(note, evidence(state.known, shown.length, atMs));
  }

  const beat = (nowMs) => {
    if (!chart.isConnected) {
      if (state.wasConnected) return; // another view has taken its place
    } else {
      state.wasConnected = true;
      const everyMs = STILL.matches ? 1_000 : state.widthMs <= 60_000 ? 33 : 250;
      if (time.isLive() && state.endMs === null && nowMs - state.paintedMs >= everyMs) paint();
    }
    requestAnimationFrame(beat);
  };
  requestAnimationFrame(beat);
  new ResizeObserver(() => paint()).observe(measure);

  return {
    root: make(
      "section",
      "card ecg",
      make("div", "head", make("h2", "", "Electrocardiogram"), make("div", "switch", ...switches)),
      time.root,
      chart,
      empty,
      panel.root,
      key,
      note,
    ),
    questions: async (ask, links, freshness, oldestMs) => {
      // The first question already needs the server's clock: where "now" is decides what is asked for.
      state.endMs = freshness.stale ? freshness.complete_as_of_ms : null;
      time.reach(oldestMs, state.endMs);
      const { fromMs, toMs } = range();
      return load(ask, links, fromMs, time.isLive() ? null : toMs);
    },
    update: (known, oldestMs, events, apart = tellApart(known.everybody)) => {
      Object.assign(state, { known, apart });
      const ends = known.lanes.flatMap((lane) => lane.lives.map((life) => life.toMs)).filter((one) => one !== null);
      time.reach(oldestMs, state.endMs, [...events, ...ends]);
      const picked = known.rebalances.find((one) => keyOf(one) === state.picked);
      if (picked?.running) panel.show(picked, serverNow(), false);
      paint();
    },
    atMs: time.atMs,
    isLive: time.isLive,
    range,
  };
}

function keyOf(rebalance) {
  return `${rebalance.started_at_ms}/${rebalance.generation_before}`;
}

function createWhy(rebalance, open) {
  const element = make("button", "why");
  element.type = "button";
  element.setAttribute("aria-label", `Why the rebalance of ${clockTime(rebalance.started_at_ms)}`);
  element.title = `Rebalance of ${clockTime(rebalance.started_at_ms)}, from ${unit([rebalance.protocol ?? "classic"])} ${rebalance.generation_before}: why?`;
  element.addEventListener("click", open);
  return element;
}

function createLane(lane) {
  const link = make("a", "", id(lane.name, "", 40));
  const name = make("div", "who", make("p", "", link, make("small", "soft")));
  name.title = visible(lane.memberId, 500);
  return make("li", "lane", name, draw("svg", { class: "track", role: "img" }), make("div", "left num", make("p", "status"), make("p", ""), make("p", "")), make("p", "assignment num"));
}

/** A lane leads to its member's page, at the same instant, and says which of its name it is. */
function lead(item, address, apart) {
  const [link, which] = item.firstChild.firstChild.children;
  if (link.getAttribute("href") !== address) link.href = address;
  say(which, apart);
  which.hidden = apart === "";
}

function updateLane(item, lane, now, known, x, atMs, width) {
  const [, track, left] = item.children;
  drawLane(track, lane, now, known.rebalances, x, atMs, width);
  const [status, session, poll] = left.children;
  const dueMs = dueOf({ deadline_at_ms: now.sessionAtMs, is_least: now.sessionIsLeast }, { deadline_at_ms: now.pollAtMs ?? null, is_least: now.pollIsLeast });
  const isPast = past(now.status, dueMs, atMs);
  const word = now.status === "none" ? "to come" : isPast ? `was ${now.status}` : now.status;
  status.className = `status ${isPast ? "unknown" : now.status}`;
  say(status, word);
  say(session, now.sessionAtMs === null ? "" : `session ${remaining(now.sessionAtMs, atMs, now.sessionIsLeast, known.reachedMs)}`);
  say(poll, now.pollAtMs === null || now.pollAtMs === undefined ? "" : `poll ${remaining(now.pollAtMs, atMs, now.pollIsLeast, known.reachedMs)}`);
  const isPollNext = session.textContent === "" || (poll.textContent !== "" && now.pollAtMs < now.sessionAtMs);
  session.className = isPollNext ? "" : "next"; // a phone has room for one
  poll.className = isPollNext ? "next" : "";
  track.setAttribute("aria-label", [item.firstChild.textContent, word, session.textContent, poll.textContent, `${track.dataset.beats} beats shown`].filter(Boolean).join(", "));
}

/** Of a group that has epochs: what the member has and is to have, and whom it waits for or who waits for it. */
function updateAssignment(item, lane, now, called, lanes) {
  const nameOf = (memberId) => {
    const one = lanes.find((other) => other.memberId === memberId);
    return one ? called(one) : visible(memberId, 40);
  };
  const words = sentence(lane.memberId, now.get(lane.memberId).assignment ?? null, nameOf, (memberId) => now.get(memberId)?.assignment?.untilMs);
  const [, track, , line] = item.children;
  say(line, words);
  line.hidden = words === "";
  if (words) track.setAttribute("aria-label", `${track.getAttribute("aria-label")}, ${words}`);
}

/** What was left at an instant; `isLeast`: it may have been heard since the row that says so. */
function remaining(deadlineMs, atMs, isLeast, reachedMs) {
  const leftMs = deadlineMs - atMs;
  if (isLeast) return leastLeft(leftMs, deadlineMs <= reachedMs);
  return leftMs > 0 ? duration(leftMs) : `due ${duration(-leftMs)} ago`;
}

function paintBack(svg, rebalances, x, atMs, width, height, picked, live) {
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  const shapes = [];
  for (const { at, label } of x.ruler()) {
    shapes.push(draw("path", { d: `M${at.toFixed(1)} ${RULER}V${height}`, class: "grid" }));
    if (at > 24 && at < width - 24) shapes.push(draw("text", { x: at.toFixed(1), y: 14, "text-anchor": "middle", class: "tick" }, label));
  }
  for (const one of rebalances) {
    const endMs = one.completed_at_ms ?? Math.max(atMs, one.started_at_ms);
    const chosen = picked === keyOf(one) ? " picked" : "";
    band(one.started_at_ms, one.joined_at_ms ?? endMs, `prepare${chosen}`);
    if (one.joined_at_ms !== null) band(one.joined_at_ms, endMs, `complete${chosen}`);
  }
  const head = x(atMs);
  shapes.push(draw("rect", { x: head, y: RULER, width: Math.max(0, width - head), height: Math.max(0, height - RULER), class: live ? "ahead" : "after" }));
  shapes.push(draw("path", { d: `M${head.toFixed(1)} ${RULER}V${height}`, class: "playhead" }));
  shapes.push(draw("path", { d: `M${head - 5} ${RULER - 4}h10l-5 7z`, class: "handle" }));
  svg.replaceChildren(...shapes);

  function band(fromMs, toMs, className) {
    const from = Math.max(0, x(fromMs));
    const to = Math.min(width, x(toMs));
    if (to >= 0 && from <= width) shapes.push(draw("rect", { x: from.toFixed(1), y: RULER, width: Math.max(1.5, to - from).toFixed(1), height: height - RULER, class: `rebalance ${className}` }));
  }
}

function evidence(known, count, atMs) {
  const parts = [];
  if (count > LANES_MAX) parts.push(`${count - LANES_MAX} more members are not drawn`);
  if (known.archivedToMs === null) parts.push("beats are samples, one every few seconds, because no single requests are kept (events)");
  else if (known.archivedToMs < atMs - 1_000) parts.push(`each beat is a request; in the last ${span(Math.round(atMs - known.archivedToMs))}, which are not in the archive yet, a sample of them`);
  else parts.push("each beat is a request");
  return `${parts.join(". ")}.`.replace(/^./, (first) => first.toUpperCase());
}
