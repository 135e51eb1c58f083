"""Moves and restarts of coordinators: what they do to deadlines, and what is a group's state after a load."""
