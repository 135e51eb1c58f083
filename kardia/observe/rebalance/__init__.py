"""A rebalance from its first sign to its end: generations, who was dropped, groups that become Empty."""
