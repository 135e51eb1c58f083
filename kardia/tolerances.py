"""How much later than its deadline, or how near to each other, something may be and still be taken for what it is.

All tolerances of the observer in one place, each with what was measured or which setting of Kafka it follows; the story
words what the observer has concluded by the same numbers. What must hold between them is a test
(`tests/kardia/test_tolerances.py`). Settings that a user may change are in `ObserverSettings`.
"""

from __future__ import annotations

from kardia.kafka.libraries import AUTO_COMMIT_INTERVAL_MS
from kardia.kafka.sessions import POLL_INTERVAL_MS

# --- Stamps: what is read is cut to a ms

STAMP_MS = 1.0
"""Width of a stamp."""

TWO_STAMPS_MS = 2.0
"""Two instants computed from stamps cut to 1 ms may be off by that much; a timer never fires before its deadline."""

EARLY_MS = 3.0
"""A timer may seem to fire so much before its deadline: its begin is the answer of a request, which is later than the
operation, and stamps are cut."""

IN_TIME_MS = 10.0
"""A request that reached the broker that much before the end of a session was in time, whatever the width of stamps."""


# --- Timers: none fires before its deadline, and each may fire late

LATE_MS = 1_000
"""No conclusion rests on a timer that is less late than that; what happens later than that after a deadline does not
follow from it alone: the timer was begun anew, or the broker stood still. Seen on real brokers: up to 3 ms mostly, 30
to 150 ms beside a neighbour that takes the processor. Longer makes every eviction that only silence shows known
later."""

BUSY_MS = 150.0
"""So late a timer fires, or a thread of a broker goes on, beside a neighbour that takes the processor. Seen on real
brokers."""

GRACE_MS = LATE_MS
"""Silence says something only when it has lasted that long beyond the deadline: a heartbeat before the timer of the
session fires renews it, as its own answer says, and timers fire late."""

TIMERS_NEAR_MS = 25.0
"""Two deadlines that near may have been met in either order."""

LOOK_AGAIN_MS = 100.0
"""And not sooner, however short the poll interval it claims."""


# --- Answers: when a request took effect, and when its answer has come

AT_ONCE_MS = 10.0
"""What was done within that was done in an instant, to the width of what is promised of one. A Java coordinator waits 5
ms for more records before it writes, by default."""

DID_NOT_WAIT_MS = 100.0
"""Who did not wait is answered within that."""

STORED_AT_ONCE_MS = 250.0
"""Who is answered within that did not wait for others: what its answer waited for is a record that is stored."""

WAITED_MS = 500.0
"""A JoinGroup answered that late by a Java coordinator was waiting: an answer at once stands in its queue for some ms.
Scala's is answered in the handler, and waits for nothing."""

COMMIT_ANSWERED_WITHIN_MS = 50.0
"""A broker that is well answers a commit within that: what it was asked so long before its last line is logged. The
record is written and replicated first, which takes up to 45 ms in the simulated fleet."""

STORED_WITHIN_MS = 5_000.0
"""`offsets.commit.timeout.ms` by default. Scala's coordinator gives the same answer to who waits in a group that begins
to rebalance meanwhile, which another setting than this would be taken for."""

ANSWERED_WITHIN_MS = 6_000.0
"""An answer waits so long at most until what was written for it is stored (`offsets.commit.timeout.ms`, 5 s), and a
moment for its line."""

HIDDEN_MS_MAX = 10_000.0
"""No answer waits longer until what was written is stored: `offsets.commit.timeout.ms` is 5 s by default."""

NOT_REPLICATED_AFTER_MS = 1_000.0
"""COORDINATOR_NOT_AVAILABLE that comes so late is no refusal: a write was not replicated within
`offsets.commit.timeout.ms` (5 s by default), and in the Java coordinator whatever was asked after it waits with it."""

USED_WITHIN_MS = 1_000
"""A client joins with the id it was handed in its next request, milliseconds later."""


# --- A busy or a young broker

AROUND_MS = 5_000.0
"""So near in time others must have stood in the queue."""

APART_MS = 250.0
"""What is nearer than that is one moment: a pause of the process holds everybody up at once."""

YOUNG_MS = 2_500.0
"""So long after the first request about a group a broker loads classes for what it is asked. In recordings of 2.8.2 and
3.9.2 what 11 of 14 slow JoinGroups asked for happened within 12 ms of the end of their handling until then; of 24 later
ones 10, and the others at any time before."""

CLASSES_WITHIN_MS = 1_000.0
"""So long before its stamp a first operation began at most, by the request. An older request waited for something else:
in a JoinGroup that was under way, or for a coordinator."""


# --- Silence of a whole log: a broker that is down, stands still, or was started again

SIGN_MS = 1_000.0
"""A log without a line for longer than that may be the log of a broker that has died: no deadline in it is sure."""

FLUSHED_MS = 2_000.0
"""Lines of so long before the last one that a dead broker has written may be missing: of requests that it had not
answered yet, or that stood in a buffer."""

STARTS_WITHIN_MS = 1_000.0
"""No broker starts faster than that."""

PRESUMED_AFTER_MS = 3_500.0
"""So long after the first client that came back by another connection nobody came by one from before: a living broker
would have been asked by somebody, because consumers heartbeat every 3 s. Then it was restarted, most likely."""

JUDGED_WITHIN_MS = 30_000.0
"""So long after a silence a sign is awaited whether the broker was restarted in it; without one it was not."""

LEFT_BEHIND_MS = 10_000.0
"""A log that was read so much less far than that of another broker is behind for longer than between two ticks: its
broker is down and its collector with it, or what is read of it ends there."""

LOG_OFF_MS = 10_000.0
"""A log without a line for so long before a record that must have one is off: `log_off`. Three heartbeats at their
default interval of 3 s: a log from which commits alone were filtered out still shows those."""

LINE_WITHIN_MS = 2_000.0
"""So long after its record a line stands in the log at the latest. A broker that was stopped writes records as soon as
it goes on, and its first line was seen a second later on a busy machine: no record alone shows that a log is off, but a
later one with still no line since the first."""


# --- Another coordinator

ABSENT_MS = 5_000.0
"""A group of which nobody asked for that long may have been led by another broker meanwhile, and be back."""

AWAKE_MS = 10_000.0
"""So long after a broker went on it may not know yet that it was replaced: it learns so with its next heartbeat to the
controller, every 2 s by default, and hands its groups over one by one."""

ELECTION_STANDS_MS = 3_600_000.0
"""So long a lower epoch is one of before. After that `__consumer_offsets` may have been made anew, and count from 0."""

LOADS_WITHIN_MS = 60_000.0
"""A coordinator that answers heartbeats for that long has loaded, whatever else it was asked."""


# --- Records and sentences of one operation

CLOSED_AFTER_MS = 250.0
"""So long after a record the others of its operation, and the answer of the request that caused it, have come."""

GOES_ON_MS = 3_000.0
"""So long after it nobody waits for the rest of its operation any more, whatever has been read: a reader that stands
still holds nothing back."""

SAID_WITHIN_MS = 1_000.0
"""The coordinator's sentence about the end of a member and the record of it have instants that near to each other."""

RECORDS_WAITED_FOR_MS = 3_000.0
"""Records are read 1 to 2 s after they were written; a feed that is further behind is not waited for."""

REMOVED_AFTER_MS = 1_000.0
"""So long after it a leave is awaited that would say why a member is gone: its answer waits for the record to be
replicated."""

LEAVE_SHOWN_WITHIN_MS = 10_000.0
"""A request log without a line for so long after it may be off: that no leave is in it shows nothing then."""

SENTENCES_APART_MS = 20.0
"""Sentences of one operation stand so close to each other, on a slow machine."""

BEGAN_WITHIN_MS = 1_000.0
"""A new epoch that is told so long after the sentence about a member at most, in which nothing else was told of the
group, is that member's: both are of one operation. A broker that has just started takes 0.1 s between the two."""

DOWNGRADED_WITHIN_MS = 1_000.0
"""The sentence about that end stands so long before it at most: 15 ms were seen, where the broker loaded classes."""


# --- Epochs

TOLD_AFTER_MS = 1_000.0
"""A rebalance that lasts longer than that is told while it lasts."""

ASSIGNMENT_INTERVAL_MS = 1_000.0
"""Default `consumer.assignment.interval.ms` from 4.3 on: so long after it an epoch may have no target yet."""

CONTRADICTED_AFTER_MS = LATE_MS + ASSIGNMENT_INTERVAL_MS + 1_000.0
"""An answer so long after an end that silence showed, and with the epoch before it, says that there was none."""

RESYNCED_AFTER_MS = 10_000.0
"""An answer so long after the last epoch that was counted, and with a lower one, says that one too many was counted."""

SECOND_MS = 1_000
"""A session timeout that an eviction shows is taken for whole seconds if the timer was late by no more than it is
beside a busy neighbour."""

CONFIGURED_MS = 100
"""People configure session timeouts of so many ms, or a multiple of them."""


# --- Clients: polls, commits, leaves

QUIET_MS = AUTO_COMMIT_INTERVAL_MS + 500
"""Longest silence of a consumer that polls and commits by itself: the interval between commits and one long poll."""

COMMITS_WITHIN_MS = 2 * AUTO_COMMIT_INTERVAL_MS
"""A member that committed by itself that close to its last sign of a poll goes on committing as long as it polls."""

MARGIN_MS = 1_000
"""A commit that is due takes that long at most to be seen; the application needs time for what it was given."""

CLOSE_COMMIT_WITHIN_MS = 1_000.0
"""A consumer that closes commits what it consumed right before it leaves; seen 1 to 35 ms before."""

LEAVE_DELAY_MS = 600.0
"""From the end of the poll interval to the LeaveGroup: up to 0.5 s in librdkafka (a timer of 2 Hz), 0.1 s in Java."""

UNSEEN_MS = 5_500.0
"""A consumer that is well shows a poll that often at least: a FETCH, or a commit by itself every 5 s. It counts its
poll interval from the last poll, which may be that much later than the last sign of one."""

CALLED_BEFORE_MS = 2_500.0
"""So much earlier than a FETCH the poll may have been called that sent it: it waited for the records of the one before,
and the interval runs from the call. Seen in the simulated fleet, whose consumers wait up to a second."""

RECONNECTED_WITHIN_MS = 10_000.0
"""So long after a broker has come back a FETCH may be sent that was made before it went, by a poll of then."""

TELEMETRY_ERROR_MS = 1_500.0
"""A poll was at most that much before the instant that telemetry tells: it counts whole seconds, and the push needs its
way."""

STOPPED_WITHIN_MS = 5_000
"""A static Java member whose poll interval ran out says nothing and stops its heartbeats: its last one is that close to
the end of the interval. Java's default interval between heartbeats is 3 s; a stalled client is seen a little later."""

SHORTEST_MS = 1_000.0
"""Nobody heartbeats more often; a shorter habit is one of joining and syncing."""

RETURN_MAX_MS = POLL_INTERVAL_MS
"""A client that comes back later than that did not cause what came before."""
