"""The heart: events in, facts out.

What comes in are events that collectors read from a Kafka cluster (`events`); what goes out are rows of the tables
(`tables`). `model` says what the group coordinator does, `observe` what can be known of it from completed requests,
`command` is the command line. Apart from `command`, nothing here reads a clock, a file or a socket, and nothing here
imports more than the standard library.
"""

__version__ = "0.1.0"
