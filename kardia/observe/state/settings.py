"""Settings of the observer: what must agree between runs that are to give the same tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ObserverSettings:
    """All durations in milliseconds."""

    cluster_id: str
    kafka_version: str = ""
    """Release of the brokers, e.g. "3.9.2"; empty: Scala or Java coordinator is recognised from the lines."""

    hold_ms: float = 75.0
    """How long an event waits for others that took effect before it but were logged after it. Lines of one broker are
    out of order by a few ms (measured 2.6, 25 on a starved machine); an answer delayed by replication comes later
    still and is handled as late. A longer hold delays every answer."""

    burst_ms: float = 4.0
    """So long after the first answer of a join burst everything else of its group waits for the rest of the burst: all
    its answers were decided in one instant, but stamps are cut to 1 ms and a thread may lose the processor between."""

    settle_ms: float = 40.0
    """After the first answer of a join burst, how long further answers of it are awaited before the rebalance is
    written. All members are answered in the same instant; their lines spread over a few ms."""

    tolerance_ms: float = 25.0
    """Two instants of one broker closer than that may be in either order. Its log stamps are cut to 1 ms, and a
    starved machine was seen to fire a timer 25 ms late."""

    health_sample_ms: float = 5_000.0
    """A member in good health is written that often; one in danger at every step."""

    samples_per_s: float = 400.0
    """Members in good health that a lane writes in a second at most, over `health_sample_ms`: with more than 2,000 of
    them each is written more seldom, the longest waiting first. Where there are 16,000 in a lane, 100,000 in six, that
    is every 42 s, 2,400 rows a second in all instead of 20,000."""

    sample_within_ms: float = 0.0
    """Health is written that often inside a step, too, by the clocks of the brokers, for steps as long as a replay's;
    0: at the end of each step only."""

    lag_rows_per_s: float = 20.0
    """Rows of lag that a lane writes in a second at most. With looks at the ends every 5 s and more than 100 partitions
    that change from one to the next each is written more seldom, the longest waiting first, and lag is as of longer
    ago. Six lanes: 120 a second, 10 million a day."""

    straggler_ms: float = 500.0
    """A member that joined later than that after the start of a rebalance was waited for."""

    prediction_early_share: float = 0.38
    """A session timeout is predicted, provisionally, when this share of it has passed in silence ..."""

    prediction_missed: float = 1.25
    """... and the silence is that many times longer than the member's own habit: a heartbeat is missing."""

    prediction_share: float = 0.5
    """A timeout is imminent, and a prediction of it no longer provisional, when this share of it has passed ..."""

    prediction_habit: float = 1.6
    """... and the silence is that many times longer than the member's own habit."""

    prediction_share_max: float = 0.85
    """Latest share of a timeout at which it is predicted, whatever the habit."""

    consumer_session_ms: int = -1
    """`group.consumer.session.timeout.ms` of the brokers; -1: not known, see `kardia.observe.modern`."""

    share_session_ms: int = -1
    """`group.share.session.timeout.ms`, likewise."""

    streams_session_ms: int = -1
    """`group.streams.session.timeout.ms`, likewise."""

    def session_ms_of(self, protocol: str) -> int:
        """Session timeout of members of one of the newer protocols as configured, -1 if that is not known."""
        return {
            "consumer": self.consumer_session_ms,
            "share": self.share_session_ms,
            "streams": self.streams_session_ms,
        }.get(protocol, -1)
