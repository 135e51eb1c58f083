"""One verb of `kardia` per file: its options, its help, and what it runs."""
