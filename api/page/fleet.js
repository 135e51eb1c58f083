// All groups of all clusters, the worst first.

import { countdown, show } from "./countdown.js";
import { draw, id, make, reconcile, say } from "./dom.js";
import { drawPulse, pulses } from "./group_pulse.js";
import { danger, lastOf, now } from "./now.js";
import { sayStatus, worth } from "./status.js";
import { plain, stateClass } from "./words.js";

const SHOWN = 200;
const REQUEST_LOG_RUNG = 5; // below it not everything can be asked
const SEARCH_FROM = 10; // fewer groups are found by looking
const PAUSE_MS = 150; // of typing, before it is asked for

/** The fleet view: made once, fed with answers. */
export function fleet() {
  const tiles = make("div", "tiles");
  const urgent = now();
  const search = searchField(() => view.onNeed());
  const lists = make("div", "lists");
  const heard = pulses(lists);
  const view = {
    onNeed: () => {},
    loading: "Loading all groups …",
    root: [tiles, ...urgent.root, search.root, lists],
    questions: async (ask) => {
      const sought = search.text();
      const filter = sought ? `&search=${encodeURIComponent(sought)}` : "";
      const clusters = await ask("/api/v1/clusters");
      const [groups, dangers] = await Promise.all([
        Promise.all(clusters.clusters.map((one) => ask(`${one.links.groups}?sort=worst&limit=${SHOWN}${filter}`))),
        Promise.all(clusters.clusters.map((one) => danger(ask, one))),
      ]);
      await heard.refresh(ask, groups.flatMap((one) => one.groups), clusters.freshness);
      return { heard, freshness: clusters.freshness, clusters: clusters.clusters, groups, dangers, sought };
    },
    update: (answer) => {
      search.root.hidden = !answer.sought && answer.clusters.every((one) => one.groups < SEARCH_FROM);
      tiles.hidden = answer.sought !== ""; // they are about all groups
      urgent.update(answer.dangers);
      update(tiles, lists, answer);
    },
  };
  return view;
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

function update(tiles, lists, { heard, clusters, groups, dangers, sought }) {
  const all = groups.flatMap((one) => one.groups);
  const open = new Map(dangers.flatMap((one) => one.open).map((one) => [one.href, one]));
  const count = (status) => all.reduce((sum, group) => sum + group.members[status], 0);
  const numbers = [
    ["groups", clusters.reduce((sum, one) => sum + one.groups, 0)],
    ["members", clusters.reduce((sum, one) => sum + one.members, 0)],
    ["imminent", count("imminent")],
    ["overdue", count("overdue") - count("unseen")],
    ["unknown", count("unknown")],
    ["rebalancing", dangers.reduce((sum, one) => sum + one.open.length + one.leftOff, 0)],
  ];
  reconcile(
    tiles,
    numbers,
    ([what]) => what,
    ([what]) => make("div", "card tile", make("b"), make("span", "", what)),
    (tile, [, number]) => say(tile.firstChild, String(number)),
  );
  reconcile(
    lists,
    clusters.map((cluster, at) => ({ cluster, found: groups[at].groups, more: groups[at].next_cursor !== null })),
    ({ cluster }) => cluster.href,
    ({ cluster }) =>
      make("section", "card", make("h2", "", "Groups of ", id(cluster.cluster_id)), make("ul", "rows groups"), make("p", "empty")),
    (section, { cluster, found, more }) => {
      reconcile(section.children[1], found, (group) => group.href, createGroup, (row, group) => updateGroup(row, group, heard, open.get(group.href)));
      const last = section.children[2];
      if (sought) say(last, found.length === 0 ? "No group's name contains this." : more ? "There are more; a longer word finds them." : "");
      else say(last, found.length === 0 ? "No group has been seen yet." : more ? `and ${cluster.groups - found.length} more, in better health` : "");
      last.hidden = last.textContent === "";
    },
  );
}

function createGroup(group) {
  const link = make("a", "", id(group.group_id));
  link.href = `#${group.href.replace("/api/v1", "")}`;
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

function updateGroup(row, group, heard, open) {
  const [head, pulse, verdict, session, poll, last] = row.children;
  const { members } = group;
  drawPulse(pulse, heard.of(group), worth(group.shown));
  const counts = { ...members, overdue: members.overdue - members.unseen };
  const parts = ["overdue", "imminent", "awaited", "late", "unseen", "unknown"].filter((status) => counts[status]).map((status) => `${counts[status]} ${status}`);
  if (group.rung < REQUEST_LOG_RUNG) parts.push(`rung ${group.rung} of 6`);
  say(head.children[1], [`${members.total} member${members.total === 1 ? "" : "s"}`, ...parts].join(" · "));
  const [status, chip] = verdict.children;
  sayStatus(status, group.shown);
  chip.className = `chip ${stateClass(group.state)}`;
  say(chip, plain(group.state));
  showNext(session, group.next_session_deadline, group.session_headroom_min_ratio);
  showNext(poll, group.next_poll_deadline, group.poll_headroom_min_ratio);
  say(last, lastOf(group, open));
}

function showNext(element, next, ratio) {
  const timeoutMs = next?.timeout_ms ?? null;
  show(element, next ? { ...next, headroom_ratio: ratio } : null, timeoutMs, next?.status ?? "unknown");
}
