"""Tests, one folder per room. A package, so that helpers of one room never shadow the room itself."""
