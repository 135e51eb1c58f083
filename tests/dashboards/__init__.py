"""Tests of dashboards, rules and docker-compose: against the real API, promtool, and the real command line."""
