"""Stories that are drawn by chance: `drawn-N` and `others-N` for `epochs_recording`; N and release make one story.

Groups of every kind the release has live side by side. Members come late, close, are killed, stand still, do not poll,
are slow to give partitions up, change their topics, come back in the same seat or with the other protocol, or take one
that is taken; a group begins anew, gets a session of its own, a topic grows; in some stories a broker dies. Nothing
here knows what a coordinator does about any of it. Those that are kept were drawn when there were fewer actions and
nothing to consume, so that nobody committed: what was done is in their `truth.jsonl`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from demo.broker import WITHOUT_ZOOKEEPER
from kardia.kafka.releases import version_of
from tests.corpora.story import Step, Story

LASTS_S = 80.0
STARTED_BY_S = 8.0
"""Until then the first members of each group are started."""

QUIET_S = 16.0
"""Nothing is done so long before the end: what was done last is over by then."""

PROCESSES = 8
"""Members with a process of their own: two cores carry so many beside brokers."""

BREAKS = 0.4
"""Share of the stories in which a broker dies."""


@dataclass(frozen=True)
class Kind:
    """A kind of group: what its members may be, in the words of `epochs_recording`, and since which release."""

    group: str
    members: tuple[str, ...]
    since: tuple[int, ...] = (4, 0, 0)
    settings: tuple[str, ...] = ("",)
    """Settings a Java member may have; one is drawn."""
    seats: bool = False
    """Members may have instance ids."""


_POLL = "max.poll.interval.ms=8000"

NO_CONSUMERS = ("shared", "app")
"""Groups whose coordinator is not asked for."""

KINDS = (
    Kind("plain", ("consumer", "rd-consumer"), settings=("", _POLL)),
    Kind("sat", ("consumer", "rd-consumer"), settings=("", _POLL), seats=True),
    Kind("expr", ("consumer",), settings=("topics=re:ord.*", "topics=orders", "topics=re:ord.*")),
    Kind("slow", ("consumer",), settings=("", "slow=5000 max.poll.interval.ms=20000", "slow=3000")),
    Kind("moving", ("classic", "consumer", "classic", "consumer", "rd-classic"), settings=("", _POLL)),
    Kind("seated", ("classic", "consumer"), seats=True),
    Kind("old", ("classic", "rd-classic"), since=(2, 3, 0), settings=("", _POLL)),
    Kind("oldsat", ("classic", "rd-classic"), since=(2, 3, 0), settings=("", "slow=4000"), seats=True),
    Kind("oldslow", ("classic",), since=(2, 3, 0), settings=("slow=5000", "", "topics=refunds,orders")),
    Kind("shared", ("share", "share", "share-alone"), since=(4, 2, 0), settings=("", _POLL, "topics=orders,refunds")),
    Kind("app", ("streams",), since=(4, 2, 0)),
)

OTHERS = (
    Kind("mixed", ("classic", "rd-classic", "sarama-classic", "kafkago-classic"), (2, 3, 0), ("", _POLL)),
    Kind("franz", ("franz-classic",), (2, 3, 0), ("", _POLL), seats=True),
    Kind("saramas", ("sarama-classic", "sarama-classic", "classic"), (2, 3, 0), ("", _POLL), seats=True),
    Kind("newer", ("consumer", "franz-consumer", "franz-consumer", "rd-consumer"), settings=("", _POLL)),
    Kind("newersat", ("franz-consumer", "consumer"), settings=("", _POLL), seats=True),
    Kind("moving", ("franz-classic", "franz-consumer", "franz-classic"), settings=("", _POLL)),
    Kind("shared", ("franz-share", "share"), since=(4, 2, 0)),
)
"""Kinds with members of the libraries that Go has. Where they name other assignors than Java's, a group of both has
members that are refused again and again."""

OWN = ("rd-", "franz-", "sarama-", "kafkago-")
"""Begin of the kinds of members whose programs are told in words of their own."""


@dataclass
class Member:
    """Who was started, and until when something is done to it."""

    name: str
    kind: str
    group: Kind
    seat: str
    busy_s: float

    @property
    def is_alone(self) -> bool:
        """Whether it has a process of its own."""
        return self.kind.startswith(OWN) or self.kind == "streams" or self.kind.endswith("-alone")


@dataclass
class Draw:
    """A story as far as it is drawn."""

    random: Random
    steps: list[tuple[float, Step]] = field(default_factory=list)
    present: list[Member] = field(default_factory=list)
    started: int = 0
    alone: int = 0
    partitions: int = 2
    """Of the topic `refunds`, as it is made."""

    def add(self, at_s: float, *words: str) -> None:
        """Something is done."""
        self.steps.append((round(at_s, 1), " ".join(word for word in words if word)))

    def start(self, at_s: float, group: Kind, kind: str = "", seat: str = "") -> None:
        """Somebody comes; without `kind` and `seat` by chance."""
        kind = kind or self.random.choice(group.members)
        if kind == "classic" and self.random.random() < 0.3:
            kind = "classic-alone"
        if group.seats and not seat and self.random.random() < 0.7:
            seat = f"seat{self.started}"
        self.started += 1
        member = Member(f"{group.group}-{self.started}", kind, group, seat, at_s + 4)
        if member.is_alone and self.alone >= PROCESSES:
            return
        self.alone += member.is_alone
        self.present.append(member)
        self.add(at_s, "start", member.name, kind, group.group, *self._settings(member))

    def _settings(self, member: Member) -> list[str]:
        if member.kind == "streams":
            return []
        drawn = self.random.choice(member.group.settings)
        if not member.kind.startswith(OWN):
            return [f"group.instance.id={member.seat}" if member.seat else "", drawn]
        poll = "poll-interval-ms=8000" if drawn == _POLL else "poll-interval-ms=60000"
        return [f"instance-id={member.seat}" if member.seat else "", poll]

    def gone(self, member: Member) -> None:
        """It is no member any more, by what is done to it."""
        self.present.remove(member)
        self.alone -= member.is_alone

    def told(self, at_s: float, member: Member, *words: str) -> None:
        """A member is told something, in the words of its program."""
        self.add(at_s, "say" if member.kind.startswith(OWN) or member.kind == "streams" else "do", member.name, *words)


def _close(draw: Draw, at_s: float, member: Member) -> None:
    draw.told(at_s, member, "leave" if member.kind.startswith(OWN) else "close")
    draw.gone(member)


def _come_back(draw: Draw, at_s: float, member: Member) -> None:
    """It closes, and another one takes its place, maybe of the other protocol."""
    _close(draw, at_s, member)
    if member.kind != "streams":
        draw.start(at_s + draw.random.choice((0.3, 1, 3, 13)), member.group, seat=member.seat)


def _kill(draw: Draw, at_s: float, member: Member) -> None:
    if not member.is_alone:
        return
    draw.add(at_s, "kill", member.name)
    draw.gone(member)
    if member.seat and draw.random.random() < 0.7:
        draw.start(at_s + draw.random.choice((1, 4, 12)), member.group, seat=member.seat)


def _stand_still(draw: Draw, at_s: float, member: Member) -> None:
    if not member.is_alone:
        return
    lasts_s = draw.random.choice((3, 6, 9.5, 14))
    draw.add(at_s, "stop", member.name)
    draw.add(at_s + lasts_s, "cont", member.name)
    member.busy_s = at_s + lasts_s + 2


def _stall(draw: Draw, at_s: float, member: Member) -> None:
    lasts_s = draw.random.choice((3, 7, 11, 14))
    draw.told(at_s, member, "stall", str(lasts_s if member.kind.startswith(OWN) else lasts_s * 1_000))
    member.busy_s = at_s + lasts_s + 2


def _subscribe(draw: Draw, at_s: float, member: Member) -> None:
    if member.kind.startswith(OWN) or member.kind == "streams":
        return
    draw.told(at_s, member, "topics", draw.random.choice(("orders", "refunds", "orders,refunds")))
    member.busy_s = at_s + 3


def _unsubscribe(draw: Draw, at_s: float, member: Member) -> None:
    """It leaves, and is not closed."""
    if member.kind in ("consumer", "classic"):
        draw.told(at_s, member, "unsubscribe")
        draw.gone(member)


def _be_removed(draw: Draw, at_s: float, member: Member) -> None:
    """An administrator removes everybody of a group that has classic members."""
    if member.group.group.startswith("old"):
        draw.add(at_s, "admin", "remove", member.group.group)


def _take_its_seat(draw: Draw, at_s: float, member: Member) -> None:
    """A second process comes with the same instance id."""
    if member.seat:
        draw.start(at_s, member.group, seat=member.seat)


def _begin_anew(draw: Draw, at_s: float, member: Member) -> None:
    """Everybody of the group closes; after a while others come, maybe of the other protocol."""
    for one in [one for one in draw.present if one.group is member.group and one.busy_s <= at_s]:
        _close(draw, at_s, one)
    for _ in range(2):
        draw.start(at_s + draw.random.choice((2, 6)), member.group)


def _configure(draw: Draw, at_s: float, member: Member) -> None:
    """The group gets a session timeout of its own."""
    protocol = next((name for name in ("share", "streams") if member.kind.startswith(name)), "consumer")
    if member.group.since >= (4, 0, 0):
        session_ms = draw.random.choice((6_000, 15_000))
        draw.add(at_s, "admin", "group", member.group.group, f"{protocol}.session.timeout.ms={session_ms}")


def _grow(draw: Draw, at_s: float, _member: Member) -> None:
    """A topic gets more partitions."""
    draw.partitions += 2
    draw.add(at_s, "admin", "grow", "refunds", str(draw.partitions))


ACTIONS: tuple[tuple[Callable[[Draw, float, Member], None], int], ...] = (
    (_close, 3),
    (_come_back, 5),
    (_kill, 4),
    (_stand_still, 3),
    (_stall, 4),
    (_subscribe, 2),
    (_unsubscribe, 1),
    (_be_removed, 1),
    (_take_its_seat, 1),
    (_begin_anew, 1),
    (_configure, 1),
    (_grow, 1),
)


def drawn(seed: int, version: str, of: Sequence[Kind] = KINDS) -> Story:
    """The story of a seed, with groups of these kinds."""
    draw = Draw(Random(seed))
    release = version_of(version)
    kinds = [kind for kind in of if release >= kind.since]
    groups = draw.random.sample(kinds, k=min(len(kinds), 6))
    for group in groups:
        for _ in range(draw.random.randint(2, 4)):
            draw.start(draw.random.uniform(0, STARTED_BY_S), group)
    at_s = STARTED_BY_S + 4
    while at_s < LASTS_S - QUIET_S:
        at_s += draw.random.expovariate(0.7)
        free = [member for member in draw.present if member.busy_s <= at_s]
        if draw.random.random() < 0.2 or not free:
            draw.start(at_s, draw.random.choice(groups))
        else:
            actions, weights = zip(*ACTIONS, strict=True)
            draw.random.choices(actions, weights)[0](draw, at_s, draw.random.choice(free))
    if "expr" in {group.group for group in groups}:
        draw.add(draw.random.uniform(15, 50), "admin", "create", "orders-more", "2")
    nodes = 1
    if draw.random.random() < BREAKS:
        # A broker with a ZooKeeper of its own makes no cluster here, and may come back when its session there is over.
        nodes = draw.random.choice((1, 3)) if release >= WITHOUT_ZOOKEEPER else 1
        breaks_s = draw.random.uniform(18, 45)
        draw.add(breaks_s, "breaks", draw.random.choice([one.group for one in groups if one.group not in NO_CONSUMERS]))
        away_s = draw.random.choice((2, 14)) if release >= WITHOUT_ZOOKEEPER else 20
        draw.add(breaks_s + away_s, "mends")
    what = f"drawn by chance, seed {seed}: {', '.join(group.group for group in groups)}"
    return Story(what, draw.steps, LASTS_S, nodes)
