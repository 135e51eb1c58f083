"""A process that dies on purpose between two numbered steps: the fault port of the kill tests.

`KARDIA_FAULT=STEP@BATCH`, for instance `members:written@3`, kills this process with SIGKILL when the writer reaches
that step of that batch; steps are `TABLE:before`, `TABLE:written`, `batch:before` and `batch:written`. Unset, nothing
is installed. It never raises: an exception could be handled, a kill cannot.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from spark_jobs.writers import Reached, nothing_happens

VARIABLE = "KARDIA_FAULT"


def from_environment(environment: Mapping[str, str]) -> Reached:
    """Fault port as the environment asks for it."""
    wanted = environment.get(VARIABLE, "")
    if not wanted:
        return nothing_happens

    def die(step: str, batch_id: int) -> None:
        if f"{step}@{batch_id}" == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    return die
