"""Batches of events: round trips, bounds and foreign bytes; and a topic that is missing, made again, or slow."""
