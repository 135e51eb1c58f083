"""Tests of the collector: recorded lines of eight brokers, damaged bytes, moving files, and crashes between steps."""
