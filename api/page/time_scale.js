// Time on a line, by d3-scale: where an instant stands, and where the ruler has its marks. Times of day are local.

const { scaleTime } = globalThis.d3;
const MARK_EVERY_PX = 90;

/** Maps epoch milliseconds to pixels; `ruler()` gives marks with labels. */
export function timeScale(fromMs, toMs, width) {
  const scale = scaleTime().domain([fromMs, toMs]).range([0, width]);
  const perMs = width / (toMs - fromMs);
  const x = (atMs) => (atMs - fromMs) * perMs; // the same line without making a Date of each instant
  const marks = Math.max(2, Math.floor(width / MARK_EVERY_PX));
  x.ruler = () => scale.ticks(marks).map((at) => ({ at: x(at.getTime()), label: label(at, toMs - fromMs) }));
  return x;
}

function label(at, widthMs) {
  const two = (number) => String(number).padStart(2, "0");
  const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return widthMs < 1_200_000 ? `${minutes}:${two(at.getSeconds())}` : minutes;
}
