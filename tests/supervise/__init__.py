"""Tests of `kardia up`: processes, the supervisor, its configuration file."""
