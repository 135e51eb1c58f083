"""What the observer holds: groups, members, an open rebalance, and the settings it runs by. Plain data."""
