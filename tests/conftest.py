"""Shared by all tests: `machines` and `strategies` are imported from this folder."""
