// Where in time the electrocardiogram stands: live, or any instant of the past. A slider, its keys, and jumps.

import { serverNow } from "./countdown.js";
import { make, say } from "./dom.js";
import { clockTime, day } from "./words.js";

const STEP_MS = 1_000;
const LEAP_MS = 15_000;

/** `onMove` is told when the instant was chosen; `firstMs` is where it begins, null: live. `atMs()` is the instant shown;
 * it runs while live. */
export function transport(onMove, firstMs) {
  let chosenMs = firstMs;
  let oldestMs = null;
  let endMs = null;
  let instants = [];
  const live = button("live", "Live");
  const back = button("quiet", "◂");
  const ahead = button("quiet", "▸");
  back.setAttribute("aria-label", "To the event before");
  ahead.setAttribute("aria-label", "To the next event");
  const slider = make("input", "time");
  slider.type = "range";
  slider.step = "any";
  slider.setAttribute("aria-label", "Instant shown");
  const shown = make("output", "instant num");

  const newest = () => endMs ?? serverNow();
  const atMs = () => chosenMs ?? newest();
  const move = (toMs) => {
    chosenMs = toMs === null || toMs >= newest() ? null : Math.max(oldestMs ?? toMs, toMs);
    tell();
    onMove();
  };
  const tell = () => {
    live.setAttribute("aria-pressed", String(chosenMs === null));
    slider.max = String(newest());
    slider.min = String(oldestMs ?? newest() - 60_000);
    slider.value = String(atMs());
    const words = `${day(atMs(), serverNow())} ${clockTime(atMs()).slice(0, chosenMs === null ? 8 : 12)}`.trim();
    say(shown, words);
    slider.setAttribute("aria-valuetext", chosenMs === null ? `live, ${words}` : words);
  };
  const keys = { ArrowLeft: -STEP_MS, ArrowDown: -STEP_MS, ArrowRight: STEP_MS, ArrowUp: STEP_MS, PageDown: -LEAP_MS, PageUp: LEAP_MS };
  slider.addEventListener("keydown", (event) => {
    if (event.key === "Home") move(oldestMs);
    else if (event.key === "End") move(null);
    else if (event.key in keys) move(atMs() + keys[event.key]);
    else return;
    event.preventDefault();
  });
  slider.addEventListener("input", () => move(Number(slider.value)));
  live.addEventListener("click", () => move(null));
  back.addEventListener("click", () => move(instants.filter((one) => one < atMs() - 1).at(-1) ?? oldestMs));
  ahead.addEventListener("click", () => move(instants.find((one) => one > atMs() + 1) ?? null));
  tell();
  return {
    root: make("div", "transport", live, back, slider, ahead, shown),
    atMs,
    isLive: () => chosenMs === null,
    tell,
    /** What can be reached: the oldest instant, the newest (null: now), and the events between, where they are known. */
    reach: (fromMs, toMs, events) => {
      oldestMs = fromMs;
      endMs = toMs;
      // An address may name an instant before anything was known, or one that has not been read yet.
      if (chosenMs !== null && chosenMs >= newest()) chosenMs = null;
      else if (chosenMs !== null && oldestMs !== null) chosenMs = Math.max(oldestMs, chosenMs);
      if (events) instants = [...new Set(events)].sort((one, other) => one - other);
      tell();
    },
  };
}

function button(className, label) {
  const element = make("button", className, label);
  element.type = "button";
  return element;
}
