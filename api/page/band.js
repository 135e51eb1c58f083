// The states of a group over time, as a band; evictions as marks above it.

import { draw, make } from "./dom.js";
import { between, clockTime, day, duration, plain, stateClass } from "./words.js";

const WINDOWS = [["5 min", 300_000], ["30 min", 1_800_000], ["6 h", 21_600_000], ["all", Infinity]];
const WIDTH_UNSEEN = 1000;
const TOP = 22;
const HEIGHT = 40;

/** The band: `update` draws the transitions of a group, newest first, up to the instant that is shown. */
export function band() {
  const svg = draw("svg", { role: "img" });
  const labels = make("div", "band-labels");
  const legend = make("p", "legend");
  let widthMs = WINDOWS[0][1];
  let last = null;
  const buttons = WINDOWS.map(([label, ms]) => {
    const button = make("button", "quiet", label);
    button.type = "button";
    button.addEventListener("click", () => {
      widthMs = ms;
      redraw();
    });
    return button;
  });
  const redraw = () => {
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(WINDOWS[at][1] === widthMs)));
    if (last) paint(svg, labels, legend, widthMs, ...last);
  };
  redraw();
  return {
    root: make("section", "card", make("div", "head", make("h2", "", "State over time"), make("div", "switch", ...buttons)), make("div", "band", svg, labels, legend)),
    update: (transitions, evictions, endMs) => {
      last = [transitions, evictions, endMs];
      redraw();
    },
  };
}

function paint(svg, labels, legend, widthMs, transitions, evictions, endMs) {
  const width = svg.clientWidth || WIDTH_UNSEEN;
  svg.setAttribute("viewBox", `0 0 ${width} ${TOP + HEIGHT + 4}`);
  const oldest = transitions.length ? Math.min(transitions[transitions.length - 1].at_ms, endMs) : endMs - 60_000;
  const startMs = Math.min(endMs - 1000, widthMs === Infinity ? oldest : endMs - widthMs);
  const x = (atMs) => (Math.max(0, Math.min(1, (atMs - startMs) / (endMs - startMs))) * width).toFixed(2);
  const shapes = [draw("rect", { x: 0, y: TOP, width, height: HEIGHT, class: "other" })];
  const shares = new Map();
  let untilMs = endMs;
  for (const one of transitions) {
    if (one.at_ms > endMs) continue;
    const fromMs = Math.max(one.at_ms, startMs);
    if (untilMs > fromMs) {
      const rect = draw("rect", {
        x: x(fromMs),
        y: TOP,
        width: Math.max(1.5, x(untilMs) - x(fromMs)).toFixed(2),
        height: HEIGHT,
        class: stateClass(one.to_state),
      });
      rect.append(draw("title", {}, `${plain(one.to_state)} from ${clockTime(one.at_ms)} for ${duration(untilMs - one.at_ms)}: ${plain(one.cause)}`));
      shapes.push(rect);
      shares.set(one.to_state, (shares.get(one.to_state) ?? 0) + untilMs - fromMs);
    }
    untilMs = one.at_ms;
  }
  for (const one of evictions) {
    if (one.ended_at_ms < startMs || one.ended_at_ms > endMs) continue; // when the slider stood before it, it was to come
    const at = Number(x(one.ended_at_ms));
    const mark = draw("path", { d: `M${at - 5} 6h10l-5 13z`, class: "eviction" });
    mark.append(draw("title", {}, `${between(one.ended_at_ms, one.at_bound_ms) || clockTime(one.ended_at_ms)}: evicted, ${plain(one.end_cause)}`));
    shapes.push(mark);
  }
  svg.replaceChildren(...shapes);
  svg.setAttribute("aria-label", [...shares].map(([state, ms]) => `${plain(state)} ${duration(ms)}`).join(", "));
  const ends = [startMs, endMs].map((atMs) => make("span", "num", [day(atMs, endMs), clockTime(atMs).slice(0, 8)].filter(Boolean).join(" ")));
  labels.replaceChildren(...ends);
  legend.replaceChildren(
    ...[...shares].map(([state, ms]) => make("span", `chip ${stateClass(state)}`, `${plain(state)} ${duration(ms)}`)),
    ...(evictions.some((one) => one.ended_at_ms >= startMs && one.ended_at_ms <= endMs) ? [make("span", "status overdue-mark", "▼ eviction")] : []),
  );
}
