"""What is no trace is refused with file, line and what was expected; what a trace does not expect is a difference.

Method: one right trace, and one wrong line in it at a time.
"""

from __future__ import annotations

import pytest

from kardia.trace import TraceError, play, read
from kardia.trace.language import CLAUSES, LOG_FAULTS, VERBS
from tests.golden import traces

RIGHT = """A silent member is evicted one session timeout after its last heartbeat.

Kafka 3.9.2, 4.4.0
Member a: session=10s rebalance=60s

+0.000   a joins             => a waits, group PreparingRebalance
+3.000                       => a joined generation 1 as leader, group CompletingRebalance
+3.010   a syncs as leader   => a synced, group Stable
+13.010                      => a evicted: session_expired, group Empty
"""
SYNC = "+3.010   a syncs as leader   => a synced, group Stable"
END = "+13.010                      => a evicted: session_expired, group Empty"


@pytest.mark.parametrize("version", ["3.9.2", "4.4.0"])
def test_a_right_trace_has_no_differences(version: str) -> None:
    assert play(read(RIGHT), version).differences == ()


@pytest.mark.parametrize(
    ("line", "instead", "where", "message"),
    [
        ("Kafka 3.9.2, 4.4.0", "Kafka newest", 3, "release 'newest'; expected releases such as"),
        ("Kafka 3.9.2, 4.4.0", "", 6, "a step; expected a line `Kafka VERSION, ...` before"),
        ("Member a: session=10s", "Member a: sesion=10s", 4, "did you mean 'session'?"),
        ("session=10s", "session=10", 4, "'session=10'; expected a duration such as 500ms"),
        ("Member a: session=10s rebalance=60s", "Broker group.max.sise=2", 4, "expected PROPERTY=NUMBER"),
        ("Member a: session=10s", "Member admin: session=10s", 4, "member 'admin'; expected another name"),
        (SYNC, "+3.010   b syncs", 8, "'b'; expected a declared member"),
        (SYNC, "+3.010   a sings", 8, "'sings'; expected one of joins"),
        (SYNC, "+3.010   a moves", 8, "`a moves`; expected `coordinator moves`"),
        (SYNC, "+3.010   a dies", 8, "`a dies`; expected `coordinator dies`"),
        (
            "Member a: session=10s rebalance=60s",
            "Log begins",
            4,
            "'begins'; expected one of: begins at +SECONDS; loses",
        ),
        (SYNC, "+3.010   admin removes everybody!", 8, "expected names of members"),
        (SYNC, "+3.01    a syncs", 8, "expected `+SECONDS.MMM"),
        (SYNC, "+2.999   a syncs", 8, "+2.999; expected an instant not before"),
        (SYNC, "+3.010 to +9.000 every 0.000  a syncs", 8, "expected an end after the begin"),
        (SYNC, "then a syncs", 8, "'then a syncs'; expected a step such as"),
        (END, "+13.010 => a evicted: hunger", 9, "'a evicted: hunger'; expected one of: NAMES joined"),
        (END, "+13.010 => a answered 27 UNKNOWN_MEMBER_ID", 9, "expected the name of code 27, REBALANCE_IN_PROGRESS"),
        (END, "+13.010 => on 2.8.2: group Empty", 9, "`on 2.8.2`; expected releases of this trace: 3.9.2, 4.4.0"),
    ],
)
def test_what_is_no_trace_is_refused(line: str, instead: str, where: int, message: str) -> None:
    assert line in RIGHT
    with pytest.raises(TraceError) as refused:
        read(RIGHT.replace(line, instead), "wrong.trace")
    assert str(refused.value).startswith(f"wrong.trace:{where}: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("line", "instead", "difference"),
    [
        (SYNC, "+3.010 a syncs => a synced", "at 3010 ms: group Stable, which it does not expect"),
        (SYNC, "+3.010 a syncs => group Stable", "a synced, which it does not expect"),
        (SYNC, "+3.010 a syncs => a waits, group Stable", "`a waits`, but a has been answered"),
        (END, "+13.009 => members none", "`members none`, but there are a"),
        (END, "+13.010 => group Empty", "a went: session_expired, which it does not expect"),
        (END, "+13.010 => a gone: left, group Empty", "`a gone: left`, but a went by session_expired"),
        (END, "+13.011 => group Empty", "before this line, at 13010 ms: a evicted: session_expired, group Empty"),
        (END, "+13.000 => session of a ends at +13.000", "but it is at +13.010"),
        (END, "+13.000 a heartbeats generation=3", "a answered 22 ILLEGAL_GENERATION, which it does not expect"),
    ],
)
def test_what_is_not_expected_is_a_difference(line: str, instead: str, difference: str) -> None:
    assert line in RIGHT
    assert any(difference in one for one in play(read(RIGHT.replace(line, instead)), "4.4.0").differences)


def test_every_verb_and_every_form_is_used_in_some_trace() -> None:
    steps = [step for trace in traces() for step in trace.steps]
    assert {act.verb for step in steps for act in step.acts} == set(VERBS)
    assert {one.kind for step in steps for one in step.expectations} | {"leader"} == set(CLAUSES)
    assert {fault.kind for trace in traces() for fault in trace.log_faults} == set(LOG_FAULTS)


def test_every_rule_has_its_trace() -> None:
    """The fifteen rules most often got wrong, each named in the first words of a trace."""
    named = " ".join(trace.title.split(",")[0] for trace in traces())
    assert all(f"{number}" in named.replace("and", "").split() for number in range(1, 16))
