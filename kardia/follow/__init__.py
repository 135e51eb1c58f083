"""The log is the test: classic requests of a real log are put to the coordinator model, and each answer is compared.

What comes in: events of requests, in the order in which they took effect. What goes out: how many answers were as the
model says, and a `Surprise` for each that was not and that none of a few named candidates explains. `clues` makes
operations of events; `model` is one group of the coordinator; `course` steps it and compares; `candidates` are the
edits that may explain a contradiction, with which `plan` goes through a window again; `explaining` tries them, and all
that stand are kept (`standing`); `ends` says who went, as far as they share it, and when (`loading`: since which load);
`follower` follows one group from anchor to anchor; `following` those of a log; `self_test` those of a lane while they
come; `surprises` tells of which class one is; `shown` writes it as a trace.
Decides nothing that Kafka decides: that is the coordinator's. Reads no clock, no file, no socket.
"""

from kardia.follow.follower import Follower
from kardia.follow.following import Following
from kardia.follow.surprises import Counts, Surprise, SurpriseClass

__all__ = ["Counts", "Follower", "Following", "Surprise", "SurpriseClass"]
