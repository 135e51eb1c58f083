// All groups of all clusters, the worst first.

import { to } from "./address.js";
import { Refusal } from "./ask.js";
import { countdown, show } from "./countdown.js";
import { draw, id, make, reconcile, say, visible } from "./dom.js";
import { drawPulse, pulses } from "./group_pulse.js";
import { danger, lastOf, now } from "./now.js";
import { dueOfGroup, isArchive, sayStatus, worth } from "./status.js";
import { plain, span, stateClass } from "./words.js";

const SHOWN = 200;
const REQUEST_LOG_RUNG = 5; // below it not everything can be asked
const SEARCH_FROM = 10; // fewer groups are found by looking
const PAUSE_MS = 150; // of typing, before it is asked for
const TOLD = 1000;
const NEXT_STEPS = [
  ["kardia doctor", "says what the logs of a broker can tell, and what is missing"],
  ["kardia replay", "reads logs that you have, without a job and without a broker"],
  ["kardia up", "collects, reads and serves on one machine"],
];

/** The fleet view: made once, fed with answers. */
export function fleet() {
  const tiles = make("div", "tiles");
  const urgent = now();
  const search = searchField(() => view.onNeed());
  const lists = make("div", "lists");
  const nothing = nothingYet();
  const heard = pulses(lists);
  const view = {
    onNeed: () => {},
    loading: "Loading all groups …",
    root: [tiles, ...urgent.root, search.root, nothing, lists],
    questions: async (ask) => {
      const sought = search.text();
      const filter = sought ? `&search=${encodeURIComponent(sought)}` : "";
      const clusters = await ask("/api/v1/clusters");
      const each = (question) => Promise.all(clusters.clusters.map(question));
      const [groups, dangers, past] = await Promise.all([
        each((one) => ask(`${one.links.groups}?sort=worst&limit=${SHOWN}${filter}`)),
        each((one) => (isArchive(one.freshness) ? NO_DANGER : danger(ask, one))),
        each((one) => (isArchive(one.freshness) ? wentThrough(ask, one) : null)),
      ]);
      await heard.refresh(ask, groups.flatMap((one) => one.groups), clusters.freshness);
      return { heard, freshness: clusters.freshness, clusters: clusters.clusters, groups, dangers, past, sought };
    },
    update: (answer) => {
      search.root.hidden = !answer.sought && answer.clusters.every((one) => one.groups < SEARCH_FROM);
      tiles.hidden = answer.sought !== ""; // they are about all groups
      nothing.hidden = answer.clusters.some((one) => one.groups > 0);
      urgent.update(answer.dangers);
      update(tiles, lists, answer);
    },
  };
  return view;
}

/** What to run where nothing has been seen. */
function nothingYet() {
  const steps = NEXT_STEPS.map(([command, does]) => make("li", "", make("code", "", command), ` ${does}.`));
  const root = make("section", "card next-steps", make("h2", "", "Nothing has been read yet"), make("p", "", "No group has been seen. What can be done next:"), make("ul", "", ...steps));
  root.hidden = true;
  return root;
}

const NO_DANGER = { next: [], open: [], leftOff: 0 };

/** What each group of an archive went through, by its address, the worst first; null where that is more than one answer may read. */
async function wentThrough(ask, cluster) {
  try {
    const { incidents } = await ask(`${cluster.links.incidents}?limit=${TOLD}`);
    return new Map(incidents.map((one) => [one.href, one]));
  } catch (error) {
    if (error instanceof Refusal && error.code === "range_too_wide") return null;
    throw error;
  }
}

function searchField(onChange) {
  const input = make("input");
  input.type = "search";
  input.maxLength = 200;
  input.placeholder = "Find a group";
  input.setAttribute("aria-label", "Only groups whose name contains this");
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(onChange, PAUSE_MS);
  });
  const root = make("form", "search", input);
  root.hidden = true;
  root.addEventListener("submit", (event) => event.preventDefault());
  return { root, text: () => input.value.trim() };
}

function update(tiles, lists, { heard, clusters, groups, dangers, past, sought }) {
  const all = groups.flatMap((one) => one.groups);
  const open = new Map(dangers.flatMap((one) => one.open).map((one) => [one.href, one]));
  const count = (status) => all.reduce((sum, group) => sum + group.members[status], 0);
  const known = [
    ["groups", clusters.reduce((sum, one) => sum + one.groups, 0)],
    ["members", clusters.reduce((sum, one) => sum + one.members, 0)],
  ];
  const happened = past.flatMap((one) => [...(one?.values() ?? [])]);
  const of = (what) => happened.reduce((sum, one) => sum + one[what], 0);
  const isOver = clusters.length > 0 && past.every((one) => one !== null); // of an archive nothing is said of now
  const then = [["evictions", of("evictions")], ["rebalances", of("rebalances")]];
  const present = [
    ["imminent", count("imminent")],
    ["overdue", count("overdue")],
    ["unknown", count("unknown")],
    ["rebalancing", dangers.reduce((sum, one) => sum + one.open.length + one.leftOff, 0)],
  ];
  reconcile(
    tiles,
    [...known, ...(isOver ? then : present)],
    ([what]) => what,
    ([what]) => make("div", "card tile", make("b"), make("span", "", what)),
    (tile, [, number]) => say(tile.firstChild, String(number)),
  );
  reconcile(
    lists,
    clusters.map((cluster, at) => ({ cluster, found: ranked(groups[at].groups, past[at]), more: groups[at].next_cursor !== null, past: past[at] })),
    ({ cluster }) => cluster.href,
    ({ cluster }) =>
      make("section", "card", make("h2", "", "Groups of ", id(cluster.cluster_id)), make("ul", "rows groups"), make("p", "empty"), make("p", "empty self-test")),
    (section, { cluster, found, more, past: went }) => {
      reconcile(section.children[1], found, (group) => group.href, createGroup, (row, group) => updateGroup(row, group, heard, open.get(group.href), went));
      const last = section.children[2];
      if (sought) say(last, found.length === 0 ? "No group's name contains this." : more ? "There are more; a longer word finds them." : "");
      else say(last, found.length === 0 ? "No group has been seen yet." : more ? `and ${cluster.groups - found.length} more${went ? "" : ", in better health"}` : "");
      last.hidden = last.textContent === "";
      const tested = section.children[3];
      say(tested, sayTested(cluster));
      tested.hidden = tested.textContent === "" || sought !== "";
    },
  );
}

/** What the self-test found: how many answers were as the model of the release predicts. */
function sayTested(cluster) {
  const { answers, predicted, ...classes } = cluster.self_test;
  const surprises = Object.values(classes).reduce((sum, one) => sum + one, 0);
  const hint = surprises > 0 ? " kardia surprises lists them." : "";
  return answers > 0 ? `Self-test: ${cluster.self_test_in_words}${hint}` : "";
}

function createGroup(group) {
  const link = make("a", "", id(group.group_id));
  link.href = to(group.href);
  return make(
    "li",
    "",
    make("div", "", make("p", "name", link), make("p", "soft")),
    draw("svg", { class: "pulse", role: "img" }),
    make("div", "verdict", make("span", "status"), " ", make("span", "chip")),
    countdown("next session"),
    countdown("next poll"),
    make("p", "wide soft"),
  );
}

/** Groups of an archive by what they went through, the others behind them. */
function ranked(groups, past) {
  if (past === null) return groups;
  const rank = new Map([...past.keys()].map((href, place) => [href, place]));
  return [...groups].sort((one, other) => (rank.get(one.href) ?? Infinity) - (rank.get(other.href) ?? Infinity) || 0);
}

function updateGroup(row, group, heard, open, past) {
  const [head, pulse, verdict, session, poll, last] = row.children;
  const { members } = group;
  drawPulse(pulse, heard.of(group), worth(group.shown));
  const told = past === null ? ["overdue", "imminent", "awaited", "late", "unseen", "unknown"] : []; // of an archive that was so at its end
  const parts = told.filter((status) => members[status]).map((status) => `${members[status]} ${status}`);
  if (group.rung < REQUEST_LOG_RUNG) parts.push(`evidence level ${group.rung} of 6`);
  say(head.children[1], [`${members.total} member${members.total === 1 ? "" : "s"}`, ...parts].join(" · "));
  const [status, chip] = verdict.children;
  chip.className = `chip ${stateClass(group.state)}`;
  say(chip, plain(group.state));
  session.hidden = poll.hidden = past !== null;
  if (past !== null) {
    const one = past.get(group.href);
    status.className = `status ${one?.evictions ? "overdue" : "none"}`;
    say(status, one?.evictions ? `${one.evictions} evicted` : "nobody evicted");
    say(last, one ? course(one) : "It did not rebalance.");
    return;
  }
  sayStatus(status, group.shown, null, dueOfGroup(group));
  showNext(session, group.next_session_deadline, group.session_headroom_min_ratio);
  showNext(poll, group.next_poll_deadline, group.poll_headroom_min_ratio);
  say(last, lastOf(group, open));
}

function showNext(element, next, ratio) {
  const timeoutMs = next?.timeout_ms ?? null;
  show(element, next ? { ...next, headroom_ratio: ratio } : null, timeoutMs, next?.status ?? "unknown");
}

/** What a group went through, in a line. */
function course({ ends, rebalances, rebalancing_ms: ms, longest }) {
  const parts = Object.entries(ends).map(([cause, count]) => `${count} × ${plain(cause)}`);
  if (rebalances) parts.push(`${rebalances} rebalance${rebalances === 1 ? "" : "s"}, ${span(ms)}${rebalances === 1 ? "" : " in all"}`);
  const whom = longest?.waited_for_client_id ?? longest?.waited_for ?? null;
  if (whom !== null) parts.push(`the longest took ${span(longest.duration_ms)} and waited for ${visible(whom, 60)}`);
  return `${parts.join(" · ")}.`;
}
