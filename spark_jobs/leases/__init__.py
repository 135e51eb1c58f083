"""One run at a time on a checkpoint or on tables, and one engine for each folder of tables.

`disk_lease` is a lock of the operating system, `store_lease` a number in an object store, where there are no locks;
`table_owner` says whether `kardia live` or `kardia stream` goes on with the tables.
"""
