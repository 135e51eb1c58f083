"""Who broke a membership that was taken away, and what shows it, in words. The verdict itself is the observer's."""

from __future__ import annotations

from kardia.faults import FAULT_SIGNS
from kardia.story import spoken, words
from kardia.story.facts import Row


def told(life: Row) -> str:
    """Sentences about the fault of a life that ended; empty where nobody took it away."""
    fault = life.get("fault")
    if not fault or life["ended_at_ms"] is None:
        return ""
    signs = signs_of(life)
    at_ms = int(life["ended_at_ms"])
    verdict = _VERDICTS.get(fault, _unknown)(life, signs, at_ms)
    sure = {"inferred": " (Inferred.)", "provisional": " (This may change.)"}.get(life["fault_certainty"] or "", "")
    if life["end_cause"] == "poll_timeout" and life["certainty"] != "exact":
        sure = ""  # said of the end itself
    return "".join((verdict, sure, _broker(fault, signs), _back(fault, signs, at_ms)))


def of_several(some: list[Row]) -> str:
    """The same about several lives with one fault, as far as it is the same of all."""
    fault = some[0].get("fault")
    if not fault:
        return ""
    merged: dict[str, int] = {}
    for life in some:
        for key, value in signs_of(life).items():
            merged[key] = max(value, merged.get(key, value))
    at_ms = int(some[-1]["ended_at_ms"])
    verdict = _OF_SEVERAL.get(fault) or _VERDICTS.get(fault, _unknown)(some[0], merged, at_ms)
    sure = {"inferred": " (Inferred.)", "provisional": " (This may change.)"}.get(some[0]["fault_certainty"] or "", "")
    lived = fault != "connection_lost" and all("back_at_ms" in signs_of(life) for life in some)
    back = " They came back under their old ids: their processes had lived." if lived else ""
    return verdict + (sure if some[0]["certainty"] == "exact" else "") + back


_OF_SEVERAL = {
    "client_silent": "Who broke it: the clients, which sent nothing any more.",
    "host_silent": "Who broke it: their processes, their machine, or the way to it; all there fell silent at once.",
    "heartbeats_stopped": "Who broke it: the clients' heartbeats, or their connections to the coordinator; their "
    "fetches went on.",
    "connection_lost": "Who broke it: the connections to the coordinator were lost; they came back over others.",
    "application": "Who broke it: the applications.",
    "broker_slow": "Who broke it: the broker, which did not answer in time.",
    "coordinator_moved": "Who broke it: a move; a coordinator loaded the group, and the clients, which lived, sent it "
    "nothing.",
}
"""Faults of which the sentence about one member says "it"; what is not known has the same reasons for all."""


def signs_of(life: Row) -> dict[str, int]:
    """Key -> number of a life's signs; what is not one is left out."""
    found = {}
    for sign in life.get("fault_signs") or ():
        key, _, value = str(sign).partition("=")
        if key in FAULT_SIGNS and value.isascii() and value.isdigit():
            found[key] = int(value)
    return found


def _client_silent(_life: Row, signs: dict[str, int], at_ms: int) -> str:
    if "fetched_at_ms" in signs:
        what = (
            f"no request of it came any more, on any connection (last FETCH at {_clock(signs, 'fetched_at_ms', at_ms)})"
        )
    elif "fetches_of_others" in signs:
        others = words.count(signs["fetches_of_others"], "other member")
        what = f"no heartbeat of it came any more; its fetches cannot be told from those of {others}"
    else:
        what = "no request of it came any more"
    return f"Who broke it: the client; {what}{_heard(signs)}."


def _host_silent(_life: Row, signs: dict[str, int], _at_ms: int) -> str:
    others = words.count(signs.get("host_silent", 0), "other member")
    return (
        f"Who broke it: its process, its machine, or the way to it; {others} at its address fell silent at the same "
        f"moment, and nobody there was heard again{_heard(signs)}."
    )


def _heartbeats_stopped(_life: Row, signs: dict[str, int], at_ms: int) -> str:
    fetched = _clock(signs, "fetched_at_ms", at_ms)
    return (
        f"Who broke it: the client's heartbeats, or its connection to the coordinator; its fetches went on until "
        f"{fetched}, so the client lived."
    )


def _connection_lost(_life: Row, signs: dict[str, int], at_ms: int) -> str:
    fetched = _clock(signs, "fetched_at_ms", at_ms)
    return (
        f"Who broke it: the connection to the coordinator was lost; its fetches went on until {fetched}, and it came "
        "back over another one."
    )


def _application(life: Row, signs: dict[str, int], at_ms: int) -> str:
    heard = f"; its heartbeats went on until {_clock(signs, 'heard_at_ms', at_ms)}" if "heard_at_ms" in signs else ""
    return f"Who broke it: the application{_failed(life)}{heard}."


def _failed(life: Row) -> str:
    """What an application did not do in time, where the sentence about the end has not said it."""
    if life["end_cause"] == "poll_timeout":
        return ""
    if life["end_cause"] == "rebalance_timeout":
        piece = spoken.piece(life["protocol"])
        did = f"give up {piece}s" if spoken.has_epochs(life["protocol"]) else "rejoin"
        return f", which did not {did}"
    return ", which did not poll in time"


def _broker_slow(_life: Row, signs: dict[str, int], at_ms: int) -> str:
    if "arrived_at_ms" in signs:
        return (
            f"Who broke it: the broker; a request had arrived at {_clock(signs, 'arrived_at_ms', at_ms)}, in time, and "
            f"was answered at {_clock(signs, 'handled_at_ms', at_ms)} only."
        )
    if "throttle_ms" in signs:
        return (
            f"Who broke it: a quota of the broker, which muted its connection for {words.took(signs['throttle_ms'])}."
        )
    return (
        f"Who broke it: the broker; it took up to {words.took(signs.get('broker_ms', 0))} for a request{_parts(signs)}."
    )


def _coordinator_moved(_life: Row, signs: dict[str, int], at_ms: int) -> str:
    loaded = f" at {_clock(signs, 'loaded_at_ms', at_ms)}" if "loaded_at_ms" in signs else ""
    return (
        f"Who broke it: a move; a coordinator loaded the group{loaded}, and the client, which lived (last FETCH at "
        f"{_clock(signs, 'fetched_at_ms', at_ms)}), sent it nothing."
    )


def _unknown(life: Row, signs: dict[str, int], _at_ms: int) -> str:
    why = []
    if signs.get("log_silent_ms"):
        why.append(f"the broker itself wrote no log for {words.took(signs['log_silent_ms'])}")
    if signs.get("broker_ms"):
        why.append(f"the broker took up to {words.took(signs['broker_ms'])} for a request")
    if signs.get("throttle_ms"):
        why.append(f"a quota muted its connection for {words.took(signs['throttle_ms'])}")
    if "loaded_at_ms" in signs and not why:
        why.append("nobody was heard after a coordinator had loaded the group")
    if not why and life["end_cause"] == "unknown":
        return ""  # the sentence about the end has said it
    yet = " yet" if life["certainty"] == "provisional" else ""
    return f"Cause unknown{yet}: {words.listing(why)}." if why else f"Cause unknown{yet}."


_VERDICTS = {
    "client_silent": _client_silent,
    "host_silent": _host_silent,
    "heartbeats_stopped": _heartbeats_stopped,
    "connection_lost": _connection_lost,
    "application": _application,
    "broker_slow": _broker_slow,
    "coordinator_moved": _coordinator_moved,
    "unknown": _unknown,
}
"""Words for every fault of `kardia.faults.FAULTS`; a test compares the two lists."""


def _heard(signs: dict[str, int]) -> str:
    """Who was heard meanwhile: that the broker answered others shows that it was well."""
    here, elsewhere = signs.get("host_heard", 0), signs.get("elsewhere_heard", 0)
    if not here + elsewhere:
        return ""
    at_its = f", {here} of them at its address" if here and elsewhere else " at its address" if here else " elsewhere"
    return f", while {words.count(here + elsewhere, 'other member')}{at_its} went on"


def _broker(fault: str, signs: dict[str, int]) -> str:
    """How slow the broker was where that is not the verdict."""
    if fault in ("broker_slow", "unknown"):
        return ""
    slow = signs.get("broker_ms", 0)
    text = f" The broker took up to {words.took(slow)} for a request meanwhile{_parts(signs)}." if slow else ""
    muted = signs.get("throttle_ms", 0)
    return text + (f" A quota had muted its connection for {words.took(muted)}." if muted else "")


def _parts(signs: dict[str, int]) -> str:
    named = (("queue", "broker_queue_ms"), ("handler", "broker_local_ms"), ("waiting", "broker_remote_ms"))
    parts = [f"{name} {words.took(signs[key])}" for name, key in named if signs.get(key)]
    return f" ({', '.join(parts)})" if parts else ""


def _back(fault: str, signs: dict[str, int], at_ms: int) -> str:
    """It came back under its old id: its process had lived."""
    if "back_at_ms" not in signs or "arrived_at_ms" in signs or fault == "connection_lost":
        return ""
    over = {1: " over the same connection", 0: " over another connection"}.get(
        signs.get("back_on_same_connection", -1), ""
    )
    return f" It came back at {_clock(signs, 'back_at_ms', at_ms)} under its old id{over}: its process had lived."


def _clock(signs: dict[str, int], key: str, at_ms: int) -> str:
    return words.clock(signs[key], at_ms) if key in signs else "an unknown instant"
