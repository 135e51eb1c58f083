"""Kafka's own coordinator classes against the model: random operations go in, disagreements and coverage come out."""
