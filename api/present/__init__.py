"""What is so now, kept in memory: groups, members, deadlines and counts, and how far they reach."""
