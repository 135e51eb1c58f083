"""Tests of the observer: short histories (scenes), laws over recorded ones."""
