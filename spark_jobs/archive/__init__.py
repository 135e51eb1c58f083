"""The table `events`: every accepted event of the topic, each id once, written by a query of its own.

`archive_query` is the query, `rows` makes rows of events, `deduplication` leaves out what a collector has sent again,
`marks` says how far the archive has come, in a file for each batch. The live tables are not written here.
"""
