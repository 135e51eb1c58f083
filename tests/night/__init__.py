"""A long test run ("night"): `kardia up` beside a real broker, with random faults, compared with the broker's own log.

`python -m tests.night --minutes 60 --seed 7`, or `make night`. The parts: `faults` draws what is done and when, `stage`
does it, `watch` looks at memory and logs of the roles, `compare` holds what Kardia said against server.log, `losses`
what it said to be lost against what was, `report` says what came of it.
"""
