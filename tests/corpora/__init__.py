"""Recorded logs of real brokers, one folder per story, with what is known to have happened; tests that compare."""
