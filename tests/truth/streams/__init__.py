"""Histories of streams groups, on the model and on Kafka's own classes at once."""
