// Lag of a group by partition, below the electrocardiogram: how far its commits are behind, in records and in time, and why.

import { Refusal } from "./ask.js";
import { id, make, reconcile, say, visible } from "./dom.js";
import { duration } from "./words.js";

const SHOWN = 100;
const CLASSES = { OK: "ok", WARN: "late", UNKNOWN: "unknown" };

/** The part of the page about lag: made once, asked with the group, fed with answers. */
export function lag() {
  const total = make("p", "facts");
  const why = make("ul", "reasons");
  const rows = make("ul", "rows partitions");
  const more = make("p", "soft");
  const root = make("section", "card lag", make("h2", "", "Lag"), total, why, rows, more);
  root.hidden = true;
  return {
    root,
    questions: async (ask, links) => {
      try {
        return await ask(`${links.lag}?limit=${SHOWN}`);
      } catch (error) {
        // Tables of a version that had none: nothing is shown, and nothing else suffers.
        if (error instanceof Refusal && error.code === "tables_missing") return null;
        throw error;
      }
    },
    update: (answer, protocols) => {
      // A share group commits no offsets: there is nothing that anybody could ask for.
      const needless = answer?.known.as_of_ms !== null || protocols.includes("share");
      root.hidden = answer === null || (answer.partitions.length === 0 && needless);
      if (!root.hidden) update({ total, why, rows, more }, answer);
    },
  };
}

function update(parts, { group, partitions, known, left_off: leftOff }) {
  say(parts.total, sentence(group, known));
  reconcile(parts.why, group.why, (one) => one.reason, () => make("li"), (item, one) => say(item, one.text));
  const most = Math.max(1, ...partitions.map((one) => one.lag ?? 0));
  reconcile(parts.rows, partitions, (one) => `${one.topic}/${one.partition}`, create, (row, one) => updateRow(row, one, most));
  say(parts.more, leftOff ? `${leftOff} more are not shown.` : "");
}

function sentence(group, known) {
  if (known.as_of_ms === null) {
    return "Lag is not known: nobody asked where the partitions end, which no log and no capture says; kardia collect --bootstrap-server asks.";
  }
  const of = `${group.partitions} partition${group.partitions === 1 ? "" : "s"}`;
  if (known.stale || group.lag === null) return `Committed offsets for ${of}; lag is not known now.`;
  const unknown = group.partitions - group.partitions_known;
  const rest = unknown ? `, of ${unknown} not known` : "";
  if (group.lag === 0) return `Everything is read, of ${of}${rest}.`;
  return `${bounded(group)} behind in ${group.partitions_behind} of ${of}${rest}: ${timeLag(group)}.`;
}

/** Records that are not read; where more may have come by the time of the commit, that it is the least. */
function bounded({ lag: count, lag_most: most }) {
  return most === null ? `at least ${records(count)}` : records(count);
}

function records(count) {
  return `${count.toLocaleString("en")} record${count === 1 ? "" : "s"}`;
}

/** A time lag as it is known: interpolated, or a bound that says so. */
function timeLag({ lag: count, time_lag_ms: atMs, time_lag_least_ms: leastMs, time_lag_most_ms: mostMs }) {
  if (count === 0) return "0 s";
  if (atMs !== null) return duration(atMs);
  if (leastMs !== null) return `at least ${duration(leastMs)}`;
  return (mostMs ?? null) === null ? "time not known" : `at most ${duration(mostMs)}`;
}

function create(one) {
  return make(
    "li",
    "",
    make("div", "", make("p", "", id(`${one.topic}-${one.partition}`, "", 80)), make("p", "soft")),
    make("div", "verdict", make("span", "status"), make("p", "soft")),
    make("div", "behind", make("div", "fill"), make("b")),
    make("p", "soft"),
  );
}

function updateRow(row, one, most) {
  const [name, verdict, behind, time] = row.children;
  say(name.children[1], holder(one));
  const [status, reason] = verdict.children;
  status.className = `status ${CLASSES[one.status] ?? "overdue"}`;
  say(status, one.status);
  say(reason, one.reason ?? "");
  const [fill, count] = behind.children;
  fill.style.width = `${(100 * (one.lag ?? 0)) / most}%`;
  say(count, one.lag === null ? "not known" : bounded(one));
  say(time, one.lag === null ? stateOf(one) : `${timeLag(one)}${one.deleted_unread ? ` · ${records(one.deleted_unread)} deleted unread` : ""}`);
}

function holder(one) {
  if (one.held === "nobody") return "held by nobody";
  return one.held === "member" ? `held by ${visible(one.client_id || one.member_id || "a member", 60)}` : "";
}

function stateOf(one) {
  if (one.state === "beyond_end") return "it has committed beyond the end";
  return one.state === "no_end" ? "the end is not known" : "";
}
