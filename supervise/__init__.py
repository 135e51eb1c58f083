"""`kardia up`: which processes a machine runs, started, watched, restarted and stopped in order.

The demo and the tests start their roles by it as well, so that what they show is what a user's machine does. It knows
processes and one configuration file, and nothing of Kafka.
"""
