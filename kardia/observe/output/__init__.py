"""Rows of the tables from what the observer holds."""
