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
    what = "did not poll in time" if life["end_cause"] in ("session_expired", "poll_timeout") else "did not rejoin"
    if life["end_cause"] == "rebalance_timeout" and spoken.has_epochs(life["protocol"]):
        what = f"did not give up its {spoken.piece(life['protocol'])}s"
    return f"Who broke it: the application, which {what}{heard}."


def _broker_slow(_life: Row, signs: dict[str, int], at_ms: int) -> str:
    if "arrived_at_ms" in signs:
        return (
            f"Who broke it: the broker; a request had arrived at {_clock(signs, 'arrived_at_ms', at_ms)}, in time, and "
            f"was answered at {_clock(signs, 'handled_at_ms', at_ms)} only."
        )
    if "throttle_ms" in signs:
        return (
            f"Who broke it: a quota of the broker, which muted its connection for {words.span(signs['throttle_ms'])}."
        )
    return (
        f"Who broke it: the broker; it took up to {words.span(signs.get('broker_ms', 0))} for a request{_parts(signs)}."
    )


def _coordinator_moved(_life: Row, signs: dict[str, int], at_ms: int) -> str:
    loaded = f" at {_clock(signs, 'loaded_at_ms', at_ms)}" if "loaded_at_ms" in signs else ""
    return (
        f"Who broke it: a move; a coordinator loaded the group{loaded}, and the client, which lived (last FETCH at "
        f"{_clock(signs, 'fetched_at_ms', at_ms)}), sent it nothing."
    )


def _unknown(life: Row, signs: dict[str, int], at_ms: int) -> str:
    why = []
    if signs.get("log_silent_ms"):
        why.append(f"the broker itself wrote no log for {words.span(signs['log_silent_ms'])}")
    if signs.get("broker_ms"):
        why.append(f"the broker took up to {words.span(signs['broker_ms'])} for a request")
    if signs.get("throttle_ms"):
        why.append(f"a quota muted its connection for {words.span(signs['throttle_ms'])}")
    if "loaded_at_ms" in signs and not why:
        loaded = _clock(signs, "loaded_at_ms", at_ms)
        why.append(f"a coordinator loaded the group at {loaded}, and nobody was heard after it")
    yet = " yet" if life["certainty"] == "provisional" else ""
    return f"Cause unknown{yet}: {words.listing(why)}." if why else f"Who broke it is not known{yet}."


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
    text = f" The broker took up to {words.span(slow)} for a request meanwhile{_parts(signs)}." if slow else ""
    muted = signs.get("throttle_ms", 0)
    return text + (f" A quota had muted its connection for {words.span(muted)}." if muted else "")


def _parts(signs: dict[str, int]) -> str:
    named = (("queue", "broker_queue_ms"), ("handler", "broker_local_ms"), ("waiting", "broker_remote_ms"))
    parts = [f"{name} {words.span(signs[key])}" for name, key in named if signs.get(key)]
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
