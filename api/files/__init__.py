"""Data files of the Delta tables: opened, followed from commit to commit, scanned with typed filters."""
