"""Before the roles of another engine are started the tables are moved to it, by `kardia move` as anybody calls it.

Killed in the middle, the next `kardia up` begins with it again, or goes on with the engine before if the file says so.
"""

from __future__ import annotations

from collections.abc import Callable

from supervise import process
from supervise.process import ProcessError
from supervise.roles import move_command
from supervise.up_config import UpConfig

PATIENCE_S = 30.0
"""For a move that is asked to stop: a batch of the job may take a few seconds to finish."""


def moved(config: UpConfig, say: Callable[[str], None]) -> None:
    """Move the tables to the engine of the configuration. ProcessError, with what it said, if that is refused."""
    log = config.data / "logs" / "move.log"
    say(f"The tables are those of the other engine; they are moved to `engine: {config.engine}` ({log})")
    moving = process.spawn(move_command(config), log=log, environ=process.environ())
    try:
        status = moving.wait()
    finally:
        process.stop(moving, PATIENCE_S)
    if status:
        raise ProcessError(f"The tables could not be moved, and are as they were.\n{process.tail(log)}")
    say(process.tail(log, lines=1).strip())
