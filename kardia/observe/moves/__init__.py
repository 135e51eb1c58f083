"""Another coordinator answers, or the same one again: what that does to deadlines, and what it has loaded."""
