"""Layouts: how a broker's logging lays out a line, and how its parts are found again.

    recogniser   a line of any usual layout -> its parts, and the same line as Kafka's shipped layout writes it
    log_pattern  a conversion pattern of log4j that a person gives, compiled into one expression
    dates        date formats of log4j as expressions
    table        the layouts that people are known to have, each with a line of it, for tests and for docs

The dialects read the shipped layout, by places of bytes; what is laid out otherwise is brought into it first. Ids of
clients are hostile text: all that is looked for stands before the broker's words, or at the very end of the line.
"""
