"""Logs that people posted in public, with what is true of them and what has to be said.

A folder per case, with the log files and `expect.yaml`; `relatives` and `p2-relatives` have many cases in one folder,
each of which isolates one oddity. Names are replaced, every oddity of the format is kept. See `cases.py` for the form
of an expectation.
"""
