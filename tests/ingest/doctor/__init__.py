"""Tests of `kardia doctor`."""
