// The pulse of a group in the fleet: the beats of all its members in the last minute, as the evidence shows them.
// Only rows that can be seen are asked about, a dozen at a time, so that a fleet of thousands costs what a screen costs.

import { draw } from "./dom.js";

const WIDTH_MS = 60_000;
const AGAIN_MS = 5_000;
const AT_ONCE = 12;
const UNSEEN_WIDTH = 300;
const HEIGHT = 34;
const BASE = 20;

/** What has been heard of groups whose rows are in `lists`. */
export function pulses(lists) {
  const known = new Map();
  return {
    of: (group) => known.get(group.href) ?? null,
    refresh: async (ask, groups, freshness) => {
      const rows = new Map([...lists.querySelectorAll(".groups > li")].map((row) => [row.dataset.key, row]));
      const isSeen = (group, place) => (rows.has(group.href) ? isOnScreen(rows.get(group.href)) : place < AT_ONCE);
      const nowMs = performance.now();
      const due = groups
        .filter(isSeen)
        .filter((group) => nowMs - (known.get(group.href)?.askedMs ?? -Infinity) >= AGAIN_MS)
        .sort((one, other) => (known.get(one.href)?.askedMs ?? -1) - (known.get(other.href)?.askedMs ?? -1))
        .slice(0, AT_ONCE);
      const toMs = (freshness.stale ? freshness.complete_as_of_ms : null) ?? freshness.answered_at_ms;
      await Promise.allSettled(
        due.map(async (group) => {
          const answer = await ask(`${group.links.pulse}?from=${toMs - WIDTH_MS}&to=${toMs}&limit=200`);
          const beats = answer.members.flatMap((member) => member.beats).filter((beat) => beat.error_code === 0);
          const atMs = beats.map((beat) => beat.at_ms).sort((one, other) => one - other);
          known.set(group.href, { askedMs: performance.now(), fromMs: toMs - WIDTH_MS, atMs });
        }),
      );
    },
  };
}

function isOnScreen(row) {
  const { top, bottom } = row.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

/** Draw a minute of a group. Without an answer nothing is drawn; where nothing was heard the line is dotted. */
export function drawPulse(svg, heard, status) {
  const width = svg.clientWidth || UNSEEN_WIDTH;
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  if (heard === null) {
    svg.replaceChildren();
    return;
  }
  const first = heard.atMs.length ? ((heard.atMs[0] - heard.fromMs) / WIDTH_MS) * width - 3 : width;
  let line = `M${first.toFixed(1)} ${BASE}`;
  let end = first - 3;
  for (const atMs of heard.atMs) {
    const at = ((atMs - heard.fromMs) / WIDTH_MS) * width;
    if (at - end < 5) continue; // two beats that would be one stroke
    line += `L${(at - 3).toFixed(1)} ${BASE}l1.2 2l1.8 -16l2 20l1.4 -6`;
    end = at + 3.4;
  }
  const before = `M0 ${BASE}H${Math.max(0, first).toFixed(1)}`;
  svg.replaceChildren(draw("path", { d: line, class: `trace ${status ?? "none"}` }), draw("path", { d: `${before}M${Math.max(0, end).toFixed(1)} ${BASE}H${width}`, class: "flat" }));
  svg.dataset.beats = String(heard.atMs.length);
  svg.setAttribute("aria-label", `${heard.atMs.length} beats in a minute`);
}
