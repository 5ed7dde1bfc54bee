"""The kustomizations of deploy/kustomize in a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
import shipped
import yaml
from click.testing import CliRunner

from e2e.cluster import Cluster
from extender.cli import main

NAMESPACE: Final = "surefoot-system"
CHOSEN: Final = "10.0.0.88"
"""An address in the range of these clusters instead of kubeadm's."""
FOLDERS: Final = ("base", "overlays/observe", "overlays/tls", "overlays/secondary")
COMPONENTS: Final = "with-components"
"""Not a folder: `base` with every component."""
SERVE: Final = {"surefoot": 2}
ALWAYS: Final = {"surefoot-cache": 1, "surefoot-controller": 2}
DEPLOYMENTS: Final[Mapping[str, Mapping[str, int]]] = {
    "base": SERVE | ALWAYS,
    "overlays/observe": SERVE | ALWAYS,
    "overlays/tls": SERVE | ALWAYS,
    "overlays/secondary": {"surefoot-scheduler": 2} | ALWAYS,
}
"""What runs, with how many replicas."""


@pytest.fixture
def applied(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """The cluster with one of the kustomizations in it; it goes with the test."""
    folder = shipped.KUSTOMIZE / request.param
    if request.param == COMPONENTS:
        folder = with_components(tmp_path / "site")
    if request.param == "overlays/tls":
        folder = tmp_path / "site"
        words = (
            "render-config", "--profile", "tls", "--service", f"https://{CHOSEN}:8888",
            "--kustomize", str(shipped.KUSTOMIZE), "-o", str(folder),
        )  # fmt: skip
        CliRunner().invoke(main, words, catch_exceptions=False)
    for rights in sorted(shipped.KUSTOMIZE.glob("**/rbac.yaml")):
        # Controllers of other tests were given these, and what an overlay leaves out it does not delete.
        cluster.kubectl("delete", "--ignore-not-found", "--filename", rights)
    cluster.apply(folder)
    yield cluster
    cluster.kubectl("delete", "--ignore-not-found", "--kustomize", folder)


def with_components(folder: Path) -> Path:
    """A kustomization in `folder` with all that is off by default, as its user would write it."""
    folder.mkdir()
    shipped_from = Path(os.path.relpath(shipped.KUSTOMIZE, folder))
    found = {
        "resources": [str(shipped_from / "base")],
        "components": [str(shipped_from / "components" / each) for each in ("release", "taint")],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(found))
    return folder


def applying(*folders: str) -> pytest.MarkDecorator:
    """What `applied` is to be: the test runs with each of these."""
    return pytest.mark.parametrize("applied", folders, indirect=True)
