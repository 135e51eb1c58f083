"""Shapes of the answers for OpenAPI and for the tests, rendered from the tables where a column is one."""
