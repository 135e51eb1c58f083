"""Tests of the API: real Delta tables, a real server on a real socket, a real browser."""
