"""Where tables and files lie, on this machine or in an S3-compatible store, and how they are opened and replaced.

    locations     a path or an address of a store, as people write it; opens nothing
    durable       a file of this machine, replaced as a whole
    access        region and endpoint of a store; where credentials are looked for (the standard AWS chain)
    delta         a Delta table in a folder of this machine or of a store, opened by delta-rs
    datasets      its rows for a query that runs beside other threads
    read_again    which errors mean that a file of a table was replaced while it was read
    store_errors  what a store said, as a sentence from a closed list

It never interprets a row, and nothing that it says repeats what a store has answered.
"""
