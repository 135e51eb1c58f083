// All groups of all clusters, the worst first.

import { countdown, serverNow, show } from "./countdown.js";
import { draw, id, make, reconcile, say } from "./dom.js";
import { drawPulse, pulses } from "./group_pulse.js";
import { cause, duration, plain, stateClass } from "./words.js";

const SHOWN = 200;

/** The fleet view: made once, fed with answers. */
export function fleet() {
  const tiles = make("div", "tiles");
  const lists = make("div", "lists");
  const root = [tiles, lists];
  const heard = pulses(lists);
  return {
    root,
    questions: async (ask) => {
      const clusters = await ask("/api/v1/clusters");
      const groups = await Promise.all(clusters.clusters.map((one) => ask(`${one.links.groups}?sort=worst&limit=${SHOWN}`)));
      await heard.refresh(ask, groups.flatMap((one) => one.groups), clusters.freshness);
      return { heard, freshness: clusters.freshness, clusters: clusters.clusters, groups: groups.map((one) => one.groups) };
    },
    update: (answer) => update(tiles, lists, answer),
  };
}

function update(tiles, lists, { heard, clusters, groups }) {
  const all = groups.flat();
  const count = (status) => all.reduce((sum, group) => sum + group.members[status], 0);
  const numbers = [
    ["groups", clusters.reduce((sum, one) => sum + one.groups, 0)],
    ["members", clusters.reduce((sum, one) => sum + one.members, 0)],
    ["imminent", count("imminent")],
    ["overdue", count("overdue")],
    ["rebalancing", all.filter((group) => group.last_rebalance?.running).length],
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
    clusters.map((cluster, at) => ({ cluster, groups: groups[at] })),
    ({ cluster }) => cluster.href,
    ({ cluster }) =>
      make("section", "card", make("h2", "", "Groups of ", id(cluster.cluster_id)), make("ul", "rows groups"), make("p", "empty")),
    (section, { cluster, groups: found }) => {
      reconcile(section.children[1], found, (group) => group.href, createGroup, (row, group) => updateGroup(row, group, heard));
      const hidden = cluster.groups - found.length;
      say(section.children[2], found.length === 0 ? "No group has been seen yet." : hidden > 0 ? `and ${hidden} more, in better health` : "");
      section.children[2].hidden = found.length > 0 && hidden <= 0;
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

function updateGroup(row, group, heard) {
  const [head, pulse, verdict, session, poll, last] = row.children;
  const { members } = group;
  drawPulse(pulse, heard.of(group), group.status);
  const parts = ["overdue", "imminent", "late", "unknown"].filter((status) => members[status]).map((status) => `${members[status]} ${status}`);
  say(head.children[1], [`${members.total} member${members.total === 1 ? "" : "s"}`, ...parts].join(" · "));
  const [status, chip] = verdict.children;
  status.className = `status ${group.status ?? "none"}`;
  say(status, group.status ?? "nobody");
  chip.className = `chip ${stateClass(group.state)}`;
  say(chip, plain(group.state));
  showNext(session, group.next_session_deadline, group.session_headroom_min_ratio);
  showNext(poll, group.next_poll_deadline, group.poll_headroom_min_ratio);
  say(last, lastRebalance(group.last_rebalance));
}

function showNext(element, next, ratio) {
  const timeoutMs = next?.timeout_ms ?? null;
  show(element, next ? { ...next, headroom_ratio: ratio } : null, timeoutMs, next?.status ?? "unknown");
}

function lastRebalance(rebalance) {
  if (!rebalance) return "";
  if (rebalance.running) return `Rebalancing for ${duration(serverNow() - rebalance.started_at_ms)}: ${cause(rebalance)}.`;
  return `Last rebalance ${duration(serverNow() - rebalance.completed_at_ms)} ago: ${cause(rebalance)}.`;
}
