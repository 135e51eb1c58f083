"""What is done to groups with epochs, and when: the stories that `epochs_recording` can record.

Sessions are 10 s, heartbeats 2 s. Stories that are drawn by chance are in `drawn_stories`.
"""

from __future__ import annotations

from tests.corpora.story import Step, Story

_STOPS: tuple[tuple[float, Step], ...] = (
    (0, "start stop-a rd-consumer stop"),
    (0, "start stop-b rd-consumer stop"),
    (1, "start stop-c rd-consumer stop"),
    (14, "stop stop-b"),
    (20, "cont stop-b"),
    (30, "stop stop-c"),
    (46, "cont stop-c"),
)
"""SIGSTOP shorter than the session, then longer."""

_POLLS: tuple[tuple[float, Step], ...] = (
    (2, "start poll-a consumer poll max.poll.interval.ms=8000"),
    (2, "start poll-b consumer poll max.poll.interval.ms=8000"),
    (2, "start pollrd-a rd-consumer pollrd poll-interval-ms=8000"),
    (2, "start pollrd-b rd-consumer pollrd poll-interval-ms=8000"),
    (16, "do poll-b stall 14000"),
    (16, "say pollrd-b stall 14"),
)

_ROLLING: tuple[tuple[float, Step], ...] = (
    (3, "start roll-a consumer roll group.instance.id=a"),
    (3, "start roll-b consumer roll group.instance.id=b"),
    (4, "start roll-c consumer roll"),
    (4, "start roll-d consumer roll"),
    (18, "do roll-a close"),
    (20, "start roll-a consumer roll group.instance.id=a"),
    (22, "do roll-b close"),
    (24, "start roll-b consumer roll group.instance.id=b"),
    (26, "do roll-c close"),
    (28, "start roll-c consumer roll"),
    (30, "do roll-d close"),
    (32, "start roll-d consumer roll"),
    (38, "do roll-b close"),
)
"""Static and dynamic members restarted one by one; the last static one never comes back."""

_EXPRESSIONS: tuple[tuple[float, Step], ...] = (
    (5, "start expr-a consumer expr topics=re:ord.*"),
    (6, "start expr-b consumer expr topics=re:ord.*"),
    (24, "admin create orders-more 2"),
    (40, "do expr-b topics refunds"),
)

_SLOW: tuple[tuple[float, Step], ...] = (
    (6, "start slow-a consumer slow slow=6000 max.poll.interval.ms=30000"),
    (6, "start slow-b consumer slow max.poll.interval.ms=30000"),
    (24, "start slow-c consumer slow"),
)

_TWO: tuple[tuple[float, Step], ...] = (
    (7, "start two-a consumer two"),
    (25, "start two-b consumer two"),
    (25, "start two-c consumer two"),
)

_CONFIGURED: tuple[tuple[float, Step], ...] = (
    (0, "admin group long consumer.session.timeout.ms=20000"),
    (8, "start long-a rd-consumer long"),
    (8, "start long-b rd-consumer long"),
    (9, "start less-a rd-consumer less"),
    (9, "start less-b rd-consumer less"),
    (24, "admin group less consumer.session.timeout.ms=5000 consumer.heartbeat.interval.ms=1000"),
    (30, "kill long-b"),
    (32, "kill less-b"),
)
"""A group whose session is longer than the broker's, and one whose session gets shorter while it runs."""

_REBORN: tuple[tuple[float, Step], ...] = (
    (9, "start born-a consumer born"),
    (10, "start born-b consumer born"),
    (24, "do born-a close"),
    (26, "do born-b close"),
    (30, "admin delete born"),
    (34, "start born-c consumer born"),
)

_ONLINE: tuple[tuple[float, Step], ...] = (
    (0, "start on-a classic on"),
    (0, "start on-b classic on"),
    (0, "start on-c classic-alone on"),
    (14, "do on-a close"),
    (15, "start on-a2 consumer on"),
    (22, "kill on-c"),
    (36, "do on-b close"),
    (37, "start on-b2 consumer on"),
    (46, "start on-d classic on"),
    (52, "do on-a2 close"),
    (56, "do on-b2 close"),
)
"""Classic to consumer one by one, a classic member killed in the mixed group; and back again."""

_STRAGGLER: tuple[tuple[float, Step], ...] = (
    (1, "start late-a classic late"),
    (1, "start late-b classic late slow=7000"),
    (16, "start late-c consumer late"),
    (44, "do late-c close"),
)
"""One classic member takes its time to give partitions up when the consumer protocol comes, and when it goes."""

_OFFLINE: tuple[tuple[float, Step], ...] = (
    (2, "start off-a classic off"),
    (2, "start off-b classic off"),
    (18, "do off-a close"),
    (18, "do off-b close"),
    (22, "start off-c consumer off"),
    (23, "start off-d consumer off"),
    (40, "do off-c close"),
    (40, "do off-d close"),
    (44, "start off-e classic off"),
    (45, "start off-f classic off"),
)

_STATIC_MOVE: tuple[tuple[float, Step], ...] = (
    (3, "start seat-a classic seat group.instance.id=a"),
    (3, "start seat-b classic seat group.instance.id=b"),
    (20, "do seat-a close"),
    (22, "start seat-a2 consumer seat group.instance.id=a"),
    (30, "do seat-b close"),
    (32, "start seat-b2 consumer seat group.instance.id=b"),
    (44, "do seat-a2 close"),
    (46, "start seat-a3 classic seat group.instance.id=a"),
    (50, "do seat-b2 close"),
    (52, "start seat-b3 classic seat group.instance.id=b"),
)
"""Seats that move to the other protocol and back."""

_SHARE: tuple[tuple[float, Step], ...] = (
    (0, "start sh-a share share"),
    (1, "start sh-b share-alone share"),
    (1, "start sh-c share share"),
    (3, "start sg-a share-alone shmore"),
    (4, "start sg-b share shmore"),
    (15, "do sh-c stall 14000"),
    (17, "kill sh-b"),
    (18, "stop sg-a"),
    (24, "cont sg-a"),
    (34, "stop sg-a"),
    (36, "do sh-a topics orders,refunds"),
    (40, "do sh-c close"),
    (50, "cont sg-a"),
    (54, "do sg-b close"),
)

_STREAMS: tuple[tuple[float, Step], ...] = (
    (2, "start st-a streams app"),
    (2, "start st-b streams app"),
    (24, "start st-c streams app"),
    (36, "kill st-b"),
    (50, "stop st-c"),
    (55, "cont st-c"),
    (58, "say st-c close"),
)

_BREAKS: tuple[tuple[float, Step], ...] = (
    (0, "start fail-a consumer fail"),
    (0, "start fail-b rd-consumer fail"),
    (0, "start fail-c rd-consumer fail"),
    (1, "start other-a consumer other"),
    (1, "start other-b rd-consumer other"),
    (2, "start mix-a classic mix"),
    (2, "start mix-b classic-alone mix"),
    (12, "start mix-c consumer mix"),
    (24, "breaks fail"),
    (24.2, "kill fail-c"),
    (24.3, "kill mix-b"),
    (40, "mends"),
)

_LONG_POLLS: tuple[tuple[float, Step], ...] = (
    (0, "start lp-a share longshare max.poll.interval.ms=8000"),
    (0, "start lp-b share longshare max.poll.interval.ms=8000"),
    (0, "start ls-a streams longapp consumer.max.poll.interval.ms=8000"),
    (0, "start ls-b streams longapp consumer.max.poll.interval.ms=8000"),
    (18, "do lp-b stall 14000"),
    (24, "say ls-b stall 14000"),
    (46, "do lp-a close"),
    (48, "say ls-a close"),
)
"""Poll timeouts of the other two protocols, and closes beside them."""

_RESTARTS: tuple[tuple[float, Step], ...] = (
    (0, "start re-a rd-consumer re"),
    (0, "start re-b rd-consumer re"),
    (0, "start re-c consumer re"),
    (1, "start rs-a share reshare"),
    (1, "start rs-b share-alone reshare"),
    (2, "start rm-a classic remix"),
    (2, "start rm-b classic-alone remix"),
    (3, "start rt-a streams reapp"),
    (3, "start rt-b streams reapp"),
    (10, "start rm-c consumer remix"),
    (26, "breaks re"),
    (27, "kill re-b"),
    (27, "kill rs-b"),
    (27, "kill rm-b"),
    (27, "kill rt-b"),
    (31, "mends"),
    (56, "breaks re"),
    (74, "mends"),
)
"""The only broker is killed twice, for less and for more than a session; of each group one member dies meanwhile."""

_EDGES: tuple[tuple[float, Step], ...] = (
    (0, "start full-a consumer full"),
    (0, "start full-b rd-consumer full"),
    (1, "start full-c consumer full"),
    (9, "start full-d rd-consumer full"),
    (14, "do full-c close"),
    (18, "start full-e consumer full"),
    (2, "start as-a consumer plan group.remote.assignor=range"),
    (2, "start as-b consumer plan group.remote.assignor=uniform"),
    (20, "start as-c consumer plan group.remote.assignor=range"),
    (3, "start sk-a rd-consumer seats instance-id=s"),
    (3, "start sk-b consumer seats group.instance.id=t"),
    (16, "kill sk-a"),
    (20, "start sk-c rd-consumer seats instance-id=s"),
    (34, "start sk-d rd-consumer seats instance-id=s"),
    (40, "do sk-b close"),
    (5, "start gone-a consumer gone topics=refunds,orders"),
    (5, "start gone-b consumer gone topics=re:ref.*"),
    (24, "admin drop refunds"),
    (44, "admin create refunds 3"),
    (48, "do gone-b close"),
)
"""A full group, assignors that change, a seat whose owner was killed, a topic that goes and comes again."""

_PAUSED: tuple[tuple[float, Step], ...] = (
    (0, "start rest-a classic resting max.poll.interval.ms=12000 auto.commit.interval.ms=5000"),
    (0, "start rest-b classic resting max.poll.interval.ms=12000 auto.commit.interval.ms=5000"),
    (0, "start hand-a classic byhand max.poll.interval.ms=12000 enable.auto.commit=false"),
    (0, "start hand-b classic byhand max.poll.interval.ms=12000 enable.auto.commit=false"),
    (1, "start new-a consumer newer max.poll.interval.ms=12000 enable.auto.commit=false"),
    (1, "start new-b consumer newer max.poll.interval.ms=12000 enable.auto.commit=false"),
    *((at, f"do {name} rest 20000") for at in (14, 46) for name in ("rest-a", "hand-a", "new-a")),
)
"""Applications that pause all their partitions, twice and longer than their poll interval, and go on polling; they
commit by themselves, or not at all."""

STORIES = {
    "e01_lives": Story(
        "consumer groups: SIGSTOP shorter and longer than a session, poll timeouts, rolling restarts, two joins",
        (*_STOPS, *_POLLS, *_ROLLING, *_TWO),
        62,
    ),
    "e02_plans": Story(
        "consumer groups: expressions, a slow revocation, sessions of single groups, a group deleted that comes back",
        (*_EXPRESSIONS, *_SLOW, *_CONFIGURED, *_REBORN, (48, "admin grow orders 9")),
        62,
    ),
    "e03_moves": Story(
        "classic groups that become consumer groups and go back: on line, off line, a straggler, static members",
        (*_ONLINE, *_STRAGGLER, *_OFFLINE, *_STATIC_MOVE),
        72,
    ),
    "e04_share": Story("share groups: one killed while another stalls; SIGSTOP; a subscription changes", _SHARE, 62),
    "e05_streams": Story("a streams group: join, kill, SIGSTOP, close", _STREAMS, 72),
    "e07_long_polls": Story("share and streams groups: a poll interval that runs out", _LONG_POLLS, 54),
    "e08_restarts": Story("all protocols: their only broker is killed twice and comes back", _RESTARTS, 100),
    "e09_edges": Story(
        "consumer groups: full, with other assignors, with a seat that is taken, a topic that is deleted",
        _EDGES,
        66,
        settings={"group.consumer.max.size": "3"},
    ),
    "e10_paused": Story("applications that pause all their partitions and poll, and are well", _PAUSED, 76),
    "e06_breaks": Story("three brokers, the coordinator of a consumer group is killed and comes back", _BREAKS, 62, 3),
}
