"""The logic of Kardia, without clock, socket or file: events in, rows of tables out.

What comes in are events that collectors read from a Kafka cluster (`events`); what goes out are rows of the tables
(`tables`). `kafka` has facts of the protocol, `coordinator` does what the group coordinator does, `observe` says what
can be known of it from completed requests, `story` tells it in sentences, and `trace` is the language of short
histories. Nothing here reads a clock, a socket or a file, and what may be imported is a list
(`tests/setup/test_rooms.py`).
"""

__version__ = "0.1.0"
