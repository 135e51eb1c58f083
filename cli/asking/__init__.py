"""How a verb that asks finds its answers: from a running API or straight from a table directory."""
