"""`kardia up`: which processes a machine runs, started, watched, restarted and stopped in order."""
