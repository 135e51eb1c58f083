"""A simulated fleet: brokers in virtual time and clients with faults, whose truth is known; scores the observer by it.

`world` is the clock, `broker` the coordinator model behind network threads that write a request log, `clients` what
libraries do, `faults` what happens to them, `truth` what the coordinator really did, `seen` the log through the real
dialect and the observer, `score` the comparison. A run is a function of (version, seed, groups): any disagreement can
be played again. Run it: `python -m tests.truth.fleet --groups 100 --version 3.9.2 --seed 1`.
"""
