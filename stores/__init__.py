"""Tables that may lie in an S3-compatible store: opened by delta-rs, read as objects, and its errors without secrets.

    access   region and endpoint; where credentials are looked for (the standard AWS chain)
    delta    a Delta table in a folder of this machine or of a store
    datasets its rows for a query that runs beside other threads
    said     what a store said, as a sentence from a closed list

In: a `kardia.locations.Folder`. It never interprets a row, and nothing that it says repeats what a store has answered.
"""
