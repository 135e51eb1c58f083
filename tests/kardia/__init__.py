"""Tests of what is common in `kardia` and of the command line as a whole."""
