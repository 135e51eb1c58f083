"""Set-up of a working copy: from a Python and nothing else to an environment with everything pinned and hashed."""
