"""Tests of the notifier."""
