"""Measurements: what each stage manages on this machine, beside a baseline of the same run. `make bench` runs them all.

Numbers in the documentation come from here and from nowhere else.
"""
