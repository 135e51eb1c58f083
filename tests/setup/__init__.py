"""Tests of the project itself: set-up, Java, wheel, order of imports, pages."""
