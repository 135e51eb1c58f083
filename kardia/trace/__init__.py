"""Histories of a group as text that people read and programs run: requests in, expected answers and transitions out.

`language` says what can be written, `reading` makes a `Trace` of a text, `playing` puts it to a coordinator (the
model, or Kafka's own classes behind the same three verbs) and says where it differs. Pure: reads no clock, no file,
no socket.
"""

from kardia.trace.language import Trace, TraceError
from kardia.trace.playing import Engine, ModelEngine, Played, play
from kardia.trace.reading import read

__all__ = ["Engine", "ModelEngine", "Played", "Trace", "TraceError", "play", "read"]
