// Why a rebalance: its cause, its phases drawn to scale, whom it waited for, and which came before it.

import { make, visible } from "./dom.js";
import { cause, clockTime, course, least, plain, span, sure, unit } from "./words.js";

/** The panel below the electrocardiogram; `close` is called when it is put away. */
export function causePanel(close) {
  const root = make("section", "cause");
  root.hidden = true;
  root.tabIndex = -1;
  root.setAttribute("aria-label", "Cause of a rebalance");
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  return {
    root,
    hide: () => {
      root.hidden = true;
    },
    show: (rebalance, nowMs, focus) => {
      const away = make("button", "quiet", "Close");
      away.type = "button";
      away.addEventListener("click", close);
      const parts = [
        make("div", "head", make("h3", "", `${cause(rebalance)}.`), away),
        make("p", "soft", `${least(rebalance.started_at_ms, rebalance.at_bound_ms)} · ${course(rebalance, nowMs)} · ${sure(rebalance)}`),
        rebalance.reason ? make("blockquote", "", visible(rebalance.reason, 300)) : null,
        phases(rebalance, nowMs),
        make("ul", "waits", ...rebalance.stragglers.slice(0, 20).map(straggler)),
        make("p", "soft", further(rebalance)),
      ];
      root.replaceChildren(...parts.filter((part) => part !== null));
      root.hidden = false;
      if (focus) root.focus();
    },
  };
}

function phases(rebalance, nowMs) {
  const endMs = rebalance.completed_at_ms ?? nowMs;
  const midMs = rebalance.joined_at_ms ?? endMs;
  const epochs = unit([rebalance.protocol ?? "classic"]) === "epoch";
  const [first, second] = epochs ? ["computing the target", "handing over"] : ["joining", "assigning"];
  const both = epochs && rebalance.joined_at_ms === null && !rebalance.running; // no answer shows when the target came
  const part = (className, words, ms) => {
    const element = make("div", className, `${words} ${span(ms)}`);
    element.style.flexGrow = String(Math.max(ms, 1));
    return element;
  };
  const soFar = (words, over) => `${words}${over ? "" : ", so far"}`;
  return make(
    "div",
    "phases",
    part("prepare", both ? `${first} and ${second}` : soFar(first, rebalance.joined_at_ms !== null), midMs - rebalance.started_at_ms),
    endMs > midMs ? part("complete", soFar(second, rebalance.completed_at_ms !== null), endMs - midMs) : null,
  );
}

function straggler(one) {
  const who = visible(one.client_id || one.member_id || "a member", 60);
  return make("li", "", make("b", "", who), ` was waited for ${span(one.waited_ms ?? 0)}${one.pending ? ": an id that was handed out and never used" : one.joined === false ? " and never came" : ""}`);
}

function further(rebalance) {
  const parts = [];
  if (rebalance.protocol_name) parts.push(`assignor ${visible(rebalance.protocol_name, 60)}`);
  if (rebalance.leader_member_id) parts.push(`leader ${visible(rebalance.leader_member_id, 60)}`);
  if (rebalance.member_seconds_lost) parts.push(`members waited ${rebalance.member_seconds_lost} s in sum`);
  if (rebalance.broker_slow_ms) parts.push(`the broker took up to ${span(rebalance.broker_slow_ms)} for a request`);
  if (rebalance.caused_by_started_at_ms !== null) parts.push(`follows from the rebalance of ${clockTime(rebalance.caused_by_started_at_ms)}`);
  return parts.map((one) => plain(one)).join(" · ");
}
