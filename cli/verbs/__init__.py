"""One verb of `kardia` per file: its options, its help, and what it runs. A new verb is also named in `cli/main.py`."""
