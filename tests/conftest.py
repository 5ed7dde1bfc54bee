"""Shared by all tests: `machines` and `strategies` are imported from this folder."""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

# Cores are shared: how long an example took says nothing about the code.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

# A job in the background of a script ignores Ctrl-C, and so would every process that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

E2E = Path(__file__).parent / "e2e"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Count no line as covered for what chance drew: laws run untraced, in half the time, and the
    coverage gates rest on the examples that people wrote. Tests marked `untraced` do too.

    pytest-cov's own `no_cover` pauses one of the two tracers that it starts in a worker of xdist.
    """
    drawn = isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)
    if not drawn and item.get_closest_marker("untraced") is None:
        return (yield)
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave tests/e2e, which needs Go and minutes, to those who name it: `make e2e`."""
    if collection_path != E2E:
        return None
    named = [
        (config.invocation_params.dir / arg.partition("::")[0]).resolve() for arg in config.args
    ]
    return None if any(path.is_relative_to(E2E) for path in named) else True
