"""Shared by all tests: `machines` and `strategies` are imported from this folder."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

# Cores are shared: how long an example took says nothing about the code.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

# A job in the background of a script ignores Ctrl-C, and so would every process that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

E2E = Path(__file__).parent / "e2e"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count no line as covered for what chance drew: laws run untraced, in a third of the time, and
    the coverage gates rest on the examples that people wrote.
    """
    for item in items:
        if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
            item.add_marker("no_cover")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave tests/e2e, which needs Go and minutes, to those who name it: `make e2e`."""
    if collection_path != E2E:
        return None
    named = [
        (config.invocation_params.dir / arg.partition("::")[0]).resolve() for arg in config.args
    ]
    return None if any(path.is_relative_to(E2E) for path in named) else True
