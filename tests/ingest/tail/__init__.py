"""Files that grow, are rotated, copied, wrapped and deleted, and a collector that is stopped between any two steps."""
