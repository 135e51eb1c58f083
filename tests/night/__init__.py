"""A night: `kardia up` beside a real broker, with faults by chance, and at the end the broker's own log as the judge.

`python -m tests.night --minutes 60 --seed 7`, or `make night`. The parts: `faults` draws what is done and when, `stage`
does it, `watch` looks at memory and logs of the roles, `compare` holds what Kardia said against server.log, `report`
says what came of it.
"""
