"""Errors of the demo."""


class DemoError(Exception):
    """A server that the demo needs does not run, or answers as it must not; a sentence says why."""
