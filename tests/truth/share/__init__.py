"""Histories of share groups, on the model and on Kafka's own classes at once."""
