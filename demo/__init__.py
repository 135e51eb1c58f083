"""A real broker, real consumers, scripted faults, the pipeline on top: what the demo and the tests are made of.

In comes a story (data), out go a broker's own logs, the tables, and a verdict computed from both. This folder fakes
nothing: every fault happens to a real process, and no verdict knows the script.
"""
