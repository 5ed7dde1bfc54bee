"""The one kind of error that malformed input raises in this package."""

from __future__ import annotations


class WireError(ValueError):
    """Input that cannot be read: one sentence, which names the `path` where there is one."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem
