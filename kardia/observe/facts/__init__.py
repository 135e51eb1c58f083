"""All groups of a lane with indexes over them, how rows are said, and which groups need no longer be held."""
