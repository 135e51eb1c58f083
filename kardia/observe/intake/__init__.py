"""Taking in: each source's events once and in order, and how far each log has been read."""
