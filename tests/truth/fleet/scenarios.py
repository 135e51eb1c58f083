"""What a run has beside the faults of its consumers: which evidence the observer gets, and what befalls the brokers.

One thing at a time, so that a score says what it is worth. `python -m tests.truth.fleet --scenario NAME`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kardia.kafka.releases import JAVA, version_of

STREAMS = (4, 1, 0)
"""First release with streams groups."""


@dataclass(frozen=True)
class Scenario:
    """One kind of run. `blind`: evidence is lost, so that what happened there may be said to be unknown."""

    name: str
    meaning: str
    share: int
    """How many runs of a turn are of this scenario; a turn has as many as all shares together (`many.turn`)."""
    brokers: int = 1
    records: bool = False
    """The observer reads `__consumer_offsets` as well."""
    server: bool = False
    """The observer reads `server.log` as well."""
    moves: bool = False
    restarts: bool = False
    outages: bool = False
    stops: bool = False
    stalls: bool = False
    """Nothing can be stored for seconds, because a replica stands still."""
    starved: bool = False
    """Neighbours take the processor of the brokers for seconds: each step of a request takes up to 60 ms longer."""
    asleep: bool = False
    """The broker, its clients and the collector all stand still and wake together."""
    quiet: bool = False
    """Nobody but the groups of the run asks the brokers anything: where they are few, a log is silent for seconds."""
    reloads: bool = False
    loses: str = ""
    """`told`: lines are lost and the collector says so; `untold`: lines are lost on the way to the topic."""
    middle: bool = False
    disorder: bool = False
    odd: bool = False
    """Clients do what most never do, see `odd`."""
    sizes: tuple[int, ...] = ()
    """Members of the groups of a run, in turn; by chance, one to six, without any."""
    fewer: int = 1
    """Of how many groups that are asked for one is played: those here cost so much more."""
    protocol: str = ""
    """`consumer`, `share` or `streams`: what the groups speak; `migration`: they go from classic to consumer, some
    back. Without: classic."""
    tells_session: bool = True
    """The observer is told how long the broker's sessions of the newer protocols are."""
    requests: bool = True
    """The observer reads the request log."""
    lasts_ms: float = 90_000.0
    """Length of a run on the brokers' clock."""

    exact_goal: float = 1.0
    """Least share of true rows among those said `exact`: all of them, whatever befalls brokers and evidence."""
    inferred_goal: float = 0.999

    @property
    def takes_its_turn(self) -> bool:
        """Whether tests that play every scenario play this one: of the newer protocols three stand for all."""
        return bool(self.share) and (not self.protocol or self.name in ("consumer", "share", "migration, requests"))

    def is_played_by(self, version: str) -> bool:
        """Whether brokers of a release have such groups."""
        since = STREAMS if self.protocol == "streams" else JAVA
        return not self.protocol or version_of(version) >= since

    @property
    def plain(self) -> bool:
        """Whether the evidence is complete and the brokers are well: then everything can be known."""
        stands_still = self.stops or self.stalls or self.asleep
        upset = (
            self.starved or self.moves or self.restarts or self.outages or stands_still or self.quiet or self.reloads
        )
        less = bool(self.protocol) and not (self.tells_session and self.requests and self.records)
        return not (self.blind or upset or less)

    @property
    def must_find(self) -> tuple[str, ...]:
        """What may not be missed beside what may not be invented. Moves leave every log complete: each end is found, at
        last. A broker that dies takes lines along that it had not written, and of a group that nobody asks for after
        it nothing shows that anybody leads it: its members are said to be overdue, which is no missed end, but what
        they began is not known; nor is it where nobody asks a living broker anything. A cause is not judged in either:
        sessions run from a load that is known within bounds, so that of two possible causes the other may have come
        first, and it is said provisionally."""
        if self.blind or self.reloads or self.quiet or (self.protocol and not self.tells_session):
            return ()
        return ("missed end",)

    @property
    def blind(self) -> bool:
        """Whether evidence is lost."""
        return bool(self.loses) or self.middle


SCENARIOS = {
    one.name: one
    for one in (
        Scenario("requests", "the request log of one broker, and nothing else", 14),
        Scenario("records", "the request log and `__consumer_offsets`; groups are deleted in the end", 8, records=True),
        Scenario("server log", "the request log and `server.log`", 4, server=True),
        Scenario(
            "disorder",
            "lines reach the file up to 70 ms late, and each batch is sent twice (what is later than the 75 ms of "
            "`hold_ms` is counted as late, and not judged here)",
            2,
            disorder=True,
        ),
        Scenario(
            "odd clients",
            "client ids used twice, JoinGroup from version 0 on (2 on 4.x), several protocols, `group.max.size`, "
            "removal by an administrator, reconnects and outages of clients, heartbeats before SyncGroup",
            4,
            odd=True,
        ),
        Scenario("large", "groups of 50 members", 2, sizes=(50,), fewer=35),
        Scenario("huge", "a group of 500 members, for 50 s", 1, sizes=(500,), fewer=100, lasts_ms=50_000.0),
        Scenario("long", "runs of half an hour", 2, fewer=20, lasts_ms=1_800_000.0),
        Scenario("moves", "shards move between three brokers, each with its own log", 4, brokers=3, moves=True),
        Scenario("restarts", "one broker dies and comes back", 2, restarts=True),
        Scenario(
            "outages",
            "one broker dies several times, for 1.2 s to 40 s, some of its consumers with it, and others come late",
            2,
            outages=True,
        ),
        Scenario("stops", "one broker stands still (SIGSTOP) again and again, for 0.4 s to 20 s", 2, stops=True),
        Scenario(
            "stalls",
            "a replica stands still again and again: nothing can be stored, for 0.7 s to 9.5 s, while consumers are "
            "started anew",
            2,
            stalls=True,
        ),
        Scenario("stalls with records", "the same, and all of `__consumer_offsets`", 2, stalls=True, records=True),
        Scenario(
            "asleep",
            "the machine stands still again and again, for 2 s to 40 s: broker, clients and collector wake together",
            2,
            asleep=True,
        ),
        Scenario("quiet", "a group or two alone on a broker, whose log is silent for seconds", 2, quiet=True, fewer=30),
        Scenario("failover", "one of three brokers dies, the others take over", 2, brokers=3, restarts=True),
        Scenario("middle", "the log begins in the middle of the groups' lives", 2, middle=True),
        Scenario("middle with records", "the same, and all of `__consumer_offsets`", 2, middle=True, records=True),
        Scenario("gaps", "pieces of the log are lost, and the collector says so", 2, loses="told"),
        Scenario("lost lines", "single lines are lost, and only the count shows it", 2, loses="untold"),
        Scenario(
            "consumer",
            "consumer groups: requests, `__consumer_offsets`, and the session timeout of the broker",
            4,
            records=True,
            protocol="consumer",
        ),
        Scenario("consumer, requests", "the same, without `__consumer_offsets`", 3, protocol="consumer"),
        Scenario(
            "consumer, records",
            "the same, `__consumer_offsets` alone",
            2,
            records=True,
            requests=False,
            protocol="consumer",
        ),
        Scenario(
            "consumer, session unknown",
            "requests and records of consumer groups, and nobody tells how long a session is",
            2,
            records=True,
            tells_session=False,
            protocol="consumer",
        ),
        Scenario(
            "consumer, requests, session unknown",
            "requests of consumer groups, and nobody tells how long a session is",
            2,
            tells_session=False,
            protocol="consumer",
        ),
        Scenario("share", "share groups: requests and records", 2, records=True, protocol="share"),
        Scenario("share, requests", "share groups: requests alone", 2, protocol="share"),
        Scenario("streams", "streams groups: requests and records", 3, records=True, protocol="streams"),
        Scenario("streams, requests", "streams groups: requests alone", 2, protocol="streams"),
        Scenario("streams, records", "the same, records alone", 2, records=True, requests=False, protocol="streams"),
        Scenario(
            "streams, failover",
            "streams groups; one of three brokers dies, the others take over",
            2,
            brokers=3,
            records=True,
            restarts=True,
            protocol="streams",
        ),
        Scenario(
            "migration",
            "classic groups whose members are restarted with the consumer protocol, some of them back, with faults all "
            "the while: requests and records",
            4,
            records=True,
            protocol="migration",
        ),
        Scenario("migration, requests", "the same, requests alone", 3, protocol="migration"),
        Scenario(
            "migration, records", "the same, records alone", 2, records=True, requests=False, protocol="migration"
        ),
        Scenario(
            "consumer, failover",
            "consumer groups; one of three brokers dies, the others take over",
            2,
            brokers=3,
            records=True,
            restarts=True,
            protocol="consumer",
        ),
        Scenario(
            "migration, moves",
            "groups that migrate while their shards move between three brokers",
            2,
            brokers=3,
            records=True,
            moves=True,
            protocol="migration",
        ),
        Scenario(
            "consumer, gaps",
            "consumer groups; pieces of the log are lost, and the collector says so",
            2,
            records=True,
            loses="told",
            protocol="consumer",
        ),
        Scenario("consumer, gaps, requests", "the same, requests alone", 1, loses="told", protocol="consumer"),
        Scenario(
            "migration, gaps",
            "groups that migrate; pieces of the log are lost, and the collector says so",
            1,
            records=True,
            loses="told",
            protocol="migration",
        ),
        Scenario("migration, gaps, requests", "the same, requests alone", 1, loses="told", protocol="migration"),
        Scenario(
            "consumer, middle",
            "consumer groups; the request log begins in the middle of their lives, `__consumer_offsets` before",
            1,
            records=True,
            middle=True,
            protocol="consumer",
        ),
        Scenario("share, middle", "share groups, the same", 1, records=True, middle=True, protocol="share"),
        Scenario("streams, middle", "streams groups, the same", 1, records=True, middle=True, protocol="streams"),
        Scenario(
            "consumer, stalls",
            "consumer groups; a replica stands still again and again, so that nothing can be stored",
            1,
            records=True,
            stalls=True,
            protocol="consumer",
        ),
        Scenario("consumer, stalls, requests", "the same, requests alone", 1, stalls=True, protocol="consumer"),
        Scenario("share, stalls, requests", "share groups, the same, requests alone", 1, stalls=True, protocol="share"),
        Scenario(
            "streams, stalls, requests", "streams groups, the same, requests alone", 1, stalls=True, protocol="streams"
        ),
        Scenario(
            "share, stops", "share groups; the broker stands still", 1, records=True, stops=True, protocol="share"
        ),
        Scenario(
            "streams, stops", "streams groups; the broker stands still", 1, records=True, stops=True, protocol="streams"
        ),
        Scenario(
            "consumer, outages",
            "consumer groups; the broker dies several times",
            1,
            records=True,
            outages=True,
            protocol="consumer",
        ),
        Scenario(
            "streams, outages",
            "streams groups; the broker dies several times",
            1,
            records=True,
            outages=True,
            protocol="streams",
        ),
        Scenario(
            "consumer, moves",
            "consumer groups; shards move between three brokers: requests alone",
            1,
            brokers=3,
            moves=True,
            protocol="consumer",
        ),
        Scenario(
            "starved",
            "neighbours take the processor again and again, for 0.5 s to 8 s: all takes longer",
            0,
            starved=True,
        ),
        Scenario("consumer, starved", "the same", 0, records=True, starved=True, protocol="consumer"),
        Scenario("migration, starved", "the same", 0, records=True, starved=True, protocol="migration"),
        Scenario(
            "share, outages, requests",
            "share groups; the broker dies several times: requests alone",
            0,
            outages=True,
            protocol="share",
        ),
        Scenario(
            "share, stops, requests",
            "share groups; the broker stands still: requests alone",
            0,
            stops=True,
            protocol="share",
        ),
        Scenario(
            "streams, restarts, requests",
            "streams groups; the broker is started again: requests alone",
            0,
            restarts=True,
            protocol="streams",
        ),
        Scenario(
            "migration, stalls, requests",
            "groups that migrate; a replica stands still: requests alone",
            0,
            stalls=True,
            protocol="migration",
        ),
        Scenario(
            "migration, outages",
            "groups that migrate; the broker dies several times",
            0,
            records=True,
            outages=True,
            protocol="migration",
        ),
        Scenario("migration, outages, requests", "the same, requests alone", 0, outages=True, protocol="migration"),
        Scenario(
            "migration, moves, requests",
            "groups that migrate; shards move between three brokers: requests alone",
            0,
            brokers=3,
            moves=True,
            protocol="migration",
        ),
        Scenario("reloads", "a coordinator gives groups up and loads them, within 0.4 s", 0, reloads=True),
    )
}
"""By name. Those with share 0 are played on request only, as the request log cannot show all of what they do."""

PLAIN = SCENARIOS["requests"]
