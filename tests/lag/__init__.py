"""Tests of kardia.lag."""
