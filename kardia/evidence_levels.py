"""How much evidence there is of a group, as a level from a closed list, and which questions it answers. Pure.

A level (`rung` in the code and in answers) names what is read of the broker that leads the group; a higher one sharpens
what a lower one says, and takes nothing of it back (`tests/corpora/test_evidence_levels.py`). What a question needs is
said where it cannot be answered.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

RUNGS: dict[int, str] = {
    0: "nothing that is read now",
    1: "the admin API, sampled",
    2: "__consumer_offsets",
    3: "server.log",
    4: "server.log and __consumer_offsets",
    5: "the request log",
    6: "the request log, with FETCH or telemetry",
}
"""Number -> what is read."""

NEEDS_REQUESTS_REASON = "needs the request log of its broker: nothing else that was read tells when it was heard"
"""Reason in a row of `health` of a member whose requests are not read."""

GONE_REASON = "left or was evicted: which is unknown, needs server.log or the request log"
"""Reason of the end of a member that one sample of the admin API names and the next one does not."""

TAKEN_REASON = "another process has its seat: replaced, or evicted before; needs server.log or the request log"
"""The same of a static member whose group.instance.id somebody else has in the next sample."""

Degree = Literal["yes", "partly", "no"]


class Read(NamedTuple):
    """What is read of the broker of a group."""

    requests: bool = False
    """Its request log, of the APIs of groups."""
    polls: bool = False
    """FETCH in that log, or telemetry of the clients."""
    server_log: bool = False
    offsets: bool = False
    """`__consumer_offsets`, or a capture of it."""
    samples: bool = False
    """The admin API, sampled."""
    ends: bool = False
    """Where the partitions end that it has commits for."""
    beside: str = ""
    """The client library of its members where all of them have one whose fetches show no polls, as librdkafka's: then
    FETCH in the log would answer nothing more. Empty: not so, or not known."""

    @property
    def rung(self) -> int:
        """Number of `RUNGS`."""
        if self.requests:
            return 6 if self.polls else 5
        if self.server_log:
            return 3 + self.offsets
        return 2 if self.offsets else int(self.samples)


class Answerable(NamedTuple):
    """Whether a question can be answered."""

    question: str
    answered: Degree
    needs: str
    """What is missing, and which step brings it; empty if nothing is."""


_REQUESTS = "the request log of its broker (docs/request-logging.md)"
_SAID = f"server.log of its broker, which is written anyway, or {_REQUESTS}"


def questions(read: Read, *, epochs: bool = False, share: bool = False) -> list[Answerable]:
    """What people ask, and whether that can be answered. `epochs`: of a group of the newer protocols, whose records say
    more (docs/epochs.md). `share`: of a share group, whose requests tell nothing of polls,
    and which commits nothing."""
    said = read.requests or read.server_log
    told: Degree = "yes" if said and not (epochs and not read.requests and not read.offsets) else "no"
    if epochs and read.offsets and not read.requests:
        told = "partly"
    # A sample shows who is gone, and between which instants; not who was evicted.
    gone: Degree = "partly" if told == "no" and read.samples else told
    return [
        _answer("who is a member?", *_members(read)),
        _answer("why did it rebalance?", told, _REQUESTS if epochs else _SAID),
        _answer("who was evicted, and when?", gone, _REQUESTS if epochs else _SAID),
        _answer("who is next?", "yes" if read.requests else "no", _REQUESTS),
        _answer("who broke it?", "yes" if read.requests else "no", _REQUESTS),
        _answer("did it poll?", *(_OF_NO_SHARE_POLL if share else _polls(read))),
        _answer("how far is it behind?", *(_OF_NO_SHARE_LAG if share else _lag(read))),
    ]


_OF_NO_SHARE_POLL: tuple[Degree, str] = (
    "no",
    "what no broker logs: a member of a share group says its poll interval to nobody, and leaves when it is over",
)
_OF_NO_SHARE_LAG: tuple[Degree, str] = (
    "no",
    "the state of its shares, which is not read: a share group commits no offsets",
)


def _answer(question: str, answered: Degree, needs: str) -> Answerable:
    return Answerable(question, answered, "" if answered == "yes" else f"needs {needs}")


_RECORDS = "__consumer_offsets (`kardia capture`, or `kardia collect`)"
_ADMIN = "the admin API (`kardia collect --admin`), which needs nothing on a broker"
_POLLS = "FETCH in the request log, or telemetry of clients (docs/request-logging.md)"


def _members(read: Read) -> tuple[Degree, str]:
    if read.requests or read.offsets or read.samples:
        return "yes", ""
    return (
        ("partly", f"{_RECORDS}: server.log names only some members")
        if read.server_log
        else ("no", f"{_RECORDS}, or {_ADMIN}")
    )


def _polls(read: Read) -> tuple[Degree, str]:
    if read.polls:
        return "yes", ""
    if read.requests and read.beside:
        return (
            "partly",
            f"telemetry of clients (docs/request-logging.md): {read.beside} fetches beside the application, so that "
            "FETCH shows no polls of it, and only its commits do",
        )
    return (
        ("partly", f"{_POLLS}: else only commits and joins show polls")
        if read.requests
        else ("no", f"{_REQUESTS}, with FETCH")
    )


_ENDS = (
    "the ends of its partitions, which no log has: `kardia collect --bootstrap-server` asks for them, with the right "
    "Describe on the topics (docs/lag.md)"
)


def _lag(read: Read) -> tuple[Degree, str]:
    if read.offsets:
        return ("yes", "") if read.ends else ("no", _ENDS)
    return "no", f"__consumer_offsets, and {_ENDS}"
