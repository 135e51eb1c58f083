"""What is told of a rebalance: what began it, what it cost, and which rebalance before it it follows from."""
