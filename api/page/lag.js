// Lag of a group by partition, below the electrocardiogram: how far its commits are behind, in records and in time, and why.

import { Refusal } from "./ask.js";
import { id, make, reconcile, say, visible } from "./dom.js";
import { clockTime, duration } from "./words.js";

const SHOWN = 100;
const ROWS_BACK = 1000; // of an instant of the past: a row per partition that changed, by each look at the ends
const PAGES_BACK = 5; // of so many rows; what changed last before them is not shown, and that is said
const CLASSES = { OK: "ok", WARN: "late", UNKNOWN: "unknown" };

/** The part of the page about lag: made once, asked with the group, fed with answers. */
export function lag() {
  const total = make("p", "facts");
  const why = make("ul", "reasons");
  const rows = make("ul", "rows partitions");
  const more = make("p", "soft");
  const heading = make("h2", "", "Lag");
  const root = make("section", "card lag", heading, total, why, rows, more);
  root.hidden = true;
  return {
    root,
    questions: async (ask, links, atMs) => {
      try {
        return atMs === null ? await ask(`${links.lag}?limit=${SHOWN}`) : then(await before(ask, links, atMs), atMs);
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
      if (!root.hidden) update({ heading, total, why, rows, more }, answer);
    },
  };
}

function update(parts, { group, partitions, known, left_off: leftOff, from_ms: fromMs = null }) {
  const isKnown = partitions.some((one) => one.lag !== null || one.state === "beyond_end");
  // Where nobody looks at ends, who committed what is all there is.
  const isCommitted = known.as_of_ms === null && partitions.some(committer);
  parts.heading.hidden = !isKnown; // what is not known takes one line, not one for each partition
  parts.rows.hidden = !isKnown && !isCommitted;
  say(parts.total, sentence(group, known));
  reconcile(parts.why, group.why, (one) => one.reason, () => make("li"), (item, one) => say(item, one.text));
  const most = Math.max(1, ...partitions.map((one) => one.lag ?? 0));
  reconcile(parts.rows, partitions, (one) => `${one.topic}/${one.partition}`, create, (row, one) => updateRow(row, one, most));
  const more = leftOff ? `${leftOff} more are not shown.` : "";
  const cut = fromMs === null ? "" : `Partitions that last changed before ${clockTime(fromMs)} are not shown, nor counted.`;
  say(parts.more, [more, cut].filter(Boolean).join(" "));
}

/** Rows up to an instant, the newest first; `fromMs` is where they begin if there are more, else null. */
async function before(ask, links, atMs) {
  const question = `${links.lag}/history?limit=${ROWS_BACK}&to=${atMs + 1}`;
  const rows = [];
  let cursor = null;
  for (let pages = 0; pages < PAGES_BACK; pages += 1) {
    const answer = await ask(cursor === null ? question : `${question}&cursor=${encodeURIComponent(cursor)}`);
    rows.push(...answer.lag);
    cursor = answer.next_cursor;
    if (cursor === null) break;
  }
  return { lag: rows, fromMs: cursor === null ? null : rows.at(-1).at_ms };
}

/** The same answer about an instant: the latest rows up to then, and the time that had passed since. */
function then({ lag: found, fromMs }, atMs) {
  const latest = new Map();
  for (const row of found) if (!latest.has(`${row.topic}/${row.partition}`)) latest.set(`${row.topic}/${row.partition}`, row);
  const since = (sinceMs) => (sinceMs === null ? null : Math.max(0, atMs - sinceMs));
  const partitions = [...latest.values()]
    .map((row) => ({
      ...row,
      lag_most: row.committed_at_ms > row.looked_at_ms ? null : row.lag,
      time_lag_ms: since(row.behind_at_ms),
      time_lag_least_ms: since(row.behind_to_ms),
      time_lag_most_ms: since(row.behind_from_ms),
      status: row.lag === null ? "UNKNOWN" : row.verdict,
    }))
    .sort((one, other) => (other.lag ?? -1) - (one.lag ?? -1));
  const measured = partitions.filter((one) => one.lag !== null);
  const [oldest] = [...measured].sort((one, other) => (other.time_lag_ms ?? -1) - (one.time_lag_ms ?? -1));
  const sum = measured.reduce((total, one) => total + one.lag, 0);
  const isLeast = measured.some((one) => one.lag_most === null);
  return {
    group: {
      ...oldest,
      partitions: partitions.length,
      partitions_known: measured.length,
      partitions_behind: measured.filter((one) => one.lag).length,
      lag: measured.length ? sum : null,
      lag_most: isLeast ? null : sum,
      why: [],
    },
    partitions: partitions.slice(0, SHOWN),
    known: { as_of_ms: partitions.every((one) => one.looked_at_ms === null) && partitions.length ? null : atMs, stale: false },
    left_off: Math.max(0, partitions.length - SHOWN),
    from_ms: fromMs,
  };
}

function sentence(group, known) {
  if (known.as_of_ms === null) {
    return "Lag is not known: no log says where partitions end; kardia collect --bootstrap-server asks.";
  }
  const of = `${group.partitions} partition${group.partitions === 1 ? "" : "s"}`;
  if (known.stale || group.lag === null) return `Committed offsets for ${of}; lag is not known.`;
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
  say(name.children[1], holder(one) || committer(one));
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

/** Who committed, as its request says; said of a partition that nobody is known to hold. */
function committer(one) {
  const who = one.committed_by_client_id || one.committed_by;
  return who ? `offset ${one.committed_offset.toLocaleString("en")} committed by ${visible(who, 60)}` : "";
}

function stateOf(one) {
  if (one.state === "beyond_end") return "it has committed beyond the end";
  return one.state === "no_end" ? "the end is not known" : "";
}
