"""One writer at a time on a table in a store, the newest one: written into the table's own log, which nobody can pass.

A disk has a lock (`spark_jobs.leases.disk_lease`); a store has none, and a job that is thought dead may still be
writing. So every writer begins with a commit of its number, one above the last, as a Delta transaction of the
application `APP_ID`; and every commit of its batches carries the same transaction again. Then

    - an older writer finds a higher number than its own at its next look, and stops with a sentence;
    - if it had looked before the newer one came, its commit meets the newer one's entry (the name of an entry can be
      taken once: a conditional put), and as both carry a transaction of one application, delta-rs refuses it.

What an older writer of the same checkpoint has committed is recognised by the transactions of its batches; what one of
another checkpoint has committed in between is found by `check_alone`, and refused.
Truth: Delta's protocol, transaction identifiers; delta-rs, `crates/core/src/kernel/transaction/conflict_checker.rs`.
"""

from __future__ import annotations

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from spark_jobs.errors import LeaseError
from spark_jobs.writers.tables import highest_batch, last_version
from stores.locations import Folder

APP_ID = "kardia-writer"

TRIES = 5
"""Attempts to begin while others do: each failure means that somebody else has."""


def begin(table: DeltaTable) -> int:
    """Commit the number of a new writer; what it is. The one before it can commit no more."""
    for _ in range(TRIES - 1):
        try:
            return _begin(table)
        except CommitFailedError:
            table.update_incremental()
    return _begin(table)


def _begin(table: DeltaTable) -> int:
    number = (table.transaction_version(APP_ID) or 0) + 1
    table.create_write_transaction(
        [], "append", table.schema(), commit_properties=CommitProperties(app_transactions=[mark(number)])
    )
    table.update_incremental()
    return number


def mark(number: int) -> Transaction:
    """What every commit of a writer carries."""
    return Transaction(APP_ID, number)


def check(table: DeltaTable, number: int, where: str) -> None:
    """Refuse to write where a newer writer has begun; `table` is as of now."""
    found = table.transaction_version(APP_ID)
    if found is not None and found > number:
        raise _other(where)


def _other(where: str) -> LeaseError:
    return LeaseError(
        "another run has begun to write these tables",
        where,
        "one writer of these tables at a time; the newest one goes on",
        "find out who started it; stop one of the two, or give it a folder of its own",
    )


def check_alone(tables: Folder, names: tuple[str, ...], app_id: str, first_batch: int) -> None:
    """Refuse a writer that has written nothing yet over rows that came since it looked whether there are any.

    Called when it has begun, so that nobody else can add to them; `first_batch` is what it found to be free.
    """
    highest = highest_batch(tables, names)
    own = max((found for name in names if (found := last_version(tables, name, app_id)) is not None), default=-1)
    if highest is not None and highest >= first_batch and highest > own:
        raise _other(str(tables))
