"""The command line. Real clocks, disks and brokers are put together here and nowhere else.

`main` knows the verbs; `verbs` has one file each, which imports what it runs inside its function, so that `kardia
--help` starts neither Spark nor FastAPI. `asking` is how a question finds its answers, `output` how they look in a
terminal.
"""
