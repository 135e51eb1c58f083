"""Kafka's own classes as the judge of the model of consumer groups: what is drawn, compared, counted and planted."""
