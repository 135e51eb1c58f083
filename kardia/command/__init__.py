"""The command line. Real clocks, disks and brokers are put together here and nowhere else.

One file per verb; each imports what it runs inside its function, so that `kardia --help` starts neither Spark nor
FastAPI.
"""
