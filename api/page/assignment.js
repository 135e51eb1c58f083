// Target and current assignment of a member of a group that has epochs, in words: what it has and is to have, which
// partitions are on their way, who must give them up, and until when at the latest. Pure; no DOM, no clock.

import { clockTime } from "./words.js";
import { visible } from "./dom.js";

const PARTITIONS_MAX = 8; // the counts have all of them

/** What a health row says of it; null in a classic group. */
export function assignmentOf(sample) {
  if (!sample || sample.member_state === null) return null;
  return {
    epoch: sample.member_epoch,
    groupEpoch: sample.generation_id,
    state: sample.member_state,
    has: sample.partitions === null ? null : sample.partitions + (sample.partitions_revoking ?? 0),
    toHave: sample.partitions_target,
    assigned: sample.assigned ?? null,
    target: sample.assigned_target ?? null,
    revoking: sample.partitions_revoking ?? 0,
    moving: sample.moving ?? [],
    untilMs: sample.awaited_until_at_ms,
  };
}

/** One line about a member. `nameOf` says who an id is, `untilOf` until when it may hold on to what it must give up. */
export function sentence(memberId, own, nameOf, untilOf) {
  if (own === null) return "";
  const leaves = own.moving.filter((one) => one.from_member_id === memberId);
  const comes = own.moving.filter((one) => one.from_member_id !== memberId);
  const must = own.revoking ? "must give up" : "is to give up, and is not told yet,";
  const parts = [epochs(own), counts(own)];
  for (const [to, some] of by(leaves, "to_member_id")) {
    parts.push(`${must} ${partitions(some)}${to === null ? "" : ` to ${nameOf(to)}`}${own.revoking ? until(own.untilMs) : ""}`);
  }
  for (const [from, some] of by(comes, "from_member_id")) {
    parts.push(from === null ? `gets ${partitions(some)}, which nobody is known to have` : `waits for ${partitions(some)} of ${nameOf(from)}${until(untilOf(from))}`);
  }
  return parts.filter(Boolean).join(" · ");
}

function epochs({ epoch, groupEpoch, state }) {
  const away = state === "away" ? ", left for a moment" : "";
  if (epoch === null) return `its epoch is not known${away}`;
  return (groupEpoch === null || groupEpoch === epoch ? `epoch ${epoch}` : `epoch ${epoch} of ${groupEpoch}`) + away;
}

/** How many partitions it has and is to have, and which; the target only where it is another. */
function counts({ has, toHave, assigned, target }) {
  const having = has === null ? "" : `has ${has}${which(assigned)}`;
  const isSame = toHave === null || (toHave === has && (target ?? assigned) === assigned);
  const getting = isSame ? "" : `is to have ${toHave}${which(target)}`;
  return [having, getting].filter(Boolean).join(", ");
}

/** ` (orders 0-3, 7)`; nothing where it is not known, or nothing. */
function which(partitionsByTopic) {
  if (!partitionsByTopic) return "";
  return ` (${visible(partitionsByTopic.replaceAll(":", " ").replaceAll(",", ", ").replaceAll(";", "; "), 120)})`;
}

function until(atMs) {
  return atMs === null || atMs === undefined ? "" : `, until ${clockTime(atMs)} at the latest`;
}

/** Entries by the value of a field, in the order in which each is first met. */
function by(entries, field) {
  const found = new Map();
  for (const one of entries) found.set(one[field], [...(found.get(one[field]) ?? []), one]);
  return found;
}

/** `orders 0, 1, 2 and 4 more`; topics one after the other. */
function partitions(entries) {
  const shown = entries.slice(0, PARTITIONS_MAX);
  const names = [...by(shown, "topic")].map(([topic, some]) => `${visible(topic, 60)} ${some.map((one) => one.partition).join(", ")}`);
  return names.join("; ") + (entries.length > shown.length ? ` and ${entries.length - shown.length} more` : "");
}
