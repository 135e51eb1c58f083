"""Tests of the demo: its broker, story, receiver and verdict."""
