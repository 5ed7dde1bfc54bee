"""The fixtures of this folder, the version they are for, and where to look when a test fails."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from e2e import versions
from e2e.candidates import candidate
from e2e.cluster import Cluster
from e2e.fixtures import (
    cache,
    cluster,
    clusters,
    controller,
    gpu_nodes,
    pods,
    scheduler,
    storage,
    surefoot,
)
from e2e.gang_fixtures import gang_kinds, gates, history, led

__all__ = [
    "cache",
    "candidate",
    "cluster",
    "clusters",
    "controller",
    "gang_kinds",
    "gates",
    "gpu_nodes",
    "history",
    "led",
    "pods",
    "scheduler",
    "storage",
    "surefoot",
]

TIMEOUT_S = 300
"""Of one test, with the start of a cluster in it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--kubernetes 1.36.3`."""
    parser.addoption("--kubernetes", default=versions.DEFAULT, help="version of the control plane")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give tests of a whole cluster their time, and skip what this version does not have."""
    here = Path(__file__).parent
    version = versions.numbers(config.getoption("kubernetes"))
    for item in items:
        if here not in item.path.parents:
            continue
        item.add_marker(pytest.mark.timeout(TIMEOUT_S))
        if since := item.get_closest_marker("since"):
            first, why = since.args
            if version < versions.numbers(first):
                item.add_marker(pytest.mark.skip(f"{why} came with Kubernetes {first}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Name the logs of a failed test."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        found, test = item.funcargs.get("cluster"), item.funcargs.get("tmp_path")
        places = {"cluster": found.directory if isinstance(found, Cluster) else None, "test": test}
        lines = [f"logs of the {name}: {place}" for name, place in places.items() if place]
        if lines:
            report.sections.append(("logs", "\n".join(lines)))
    return report
