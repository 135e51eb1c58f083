"""Upkeep of the tables while they are written: small files put together, old rows let go, logs and files cleaned up.

`maintenance` is the thread that does it, each table about once a minute; `compaction` puts rows together by group,
`retention` takes out what is too old, `table_sizes` says what tables take and how fast they grow. No row is changed.
"""
