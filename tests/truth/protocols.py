"""What there is to play for each kind of groups: who draws and compares, what is counted, what is planted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from kardia.coordinator.classic.behaviour import SWITCHES, behaviour_of
from kardia.coordinator.consumer.behaviour import SWITCHES as CONSUMER_SWITCHES
from kardia.coordinator.consumer.behaviour import consumer_behaviour_of
from kardia.coordinator.share.behaviour import SWITCHES as SHARE_SWITCHES
from kardia.coordinator.share.behaviour import share_behaviour_of
from kardia.coordinator.streams.behaviour import SWITCHES as STREAMS_SWITCHES
from kardia.coordinator.streams.behaviour import streams_behaviour_of
from tests.truth import canaries, coverage
from tests.truth.canaries import Patch
from tests.truth.consumer import canaries as consumer_canaries
from tests.truth.consumer import coverage as consumer_coverage
from tests.truth.consumer.histories import ConsumerPlayer
from tests.truth.coverage import Cell, Verdict
from tests.truth.histories import Player
from tests.truth.oracle.settings import CONSUMER_VERSIONS, EVERY_VERSION, STREAMS_VERSIONS
from tests.truth.share import canaries as share_canaries
from tests.truth.share import coverage as share_coverage
from tests.truth.share.histories import SharePlayer
from tests.truth.streams import canaries as streams_canaries
from tests.truth.streams import coverage as streams_coverage
from tests.truth.streams.histories import StreamsPlayer


class Protocol(NamedTuple):
    """One kind of groups."""

    versions: Sequence[str]
    player: type[Player]
    coverage: Callable[[], Any]
    judge: Callable[[Counter[Cell], str], Verdict]
    mistakes: Mapping[str, Callable[[], Patch]]
    switches: Collection[str]
    behaviour_of: Callable[[str], Any]


PROTOCOLS: dict[str, Protocol] = {
    "classic": Protocol(
        EVERY_VERSION,
        Player,
        coverage.Coverage,
        coverage.judge,
        canaries.EVERY,
        SWITCHES,
        behaviour_of,
    ),
    "consumer": Protocol(
        CONSUMER_VERSIONS,
        ConsumerPlayer,
        consumer_coverage.ConsumerCoverage,
        consumer_coverage.judge,
        consumer_canaries.EVERY,
        CONSUMER_SWITCHES,
        consumer_behaviour_of,
    ),
    "share": Protocol(
        CONSUMER_VERSIONS,
        SharePlayer,
        share_coverage.ShareCoverage,
        share_coverage.judge,
        share_canaries.EVERY,
        SHARE_SWITCHES,
        share_behaviour_of,
    ),
    "streams": Protocol(
        STREAMS_VERSIONS,
        StreamsPlayer,
        streams_coverage.StreamsCoverage,
        streams_coverage.judge,
        streams_canaries.EVERY,
        STREAMS_SWITCHES,
        streams_behaviour_of,
    ),
}
