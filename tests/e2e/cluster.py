"""A control plane with fake kubelets: what a test means by "the cluster"."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from e2e.api import Api
from e2e.audit import Audit
from e2e.binaries import Binaries
from e2e.control_plane import ClusterSettings, ControlPlane
from e2e.identities import by_certificate, by_token
from e2e.processes import Process
from e2e.waiting import eventually

MANIFESTS: Final = Path(__file__).parent / "manifests"
KUBECTL: Final = Path(sys.executable).with_name("kubectl")
KWOK: Final = "e2e-kwok"
OWN_STAGES: Final = ("kwok-pod-complete.yaml", "kwok-pod-gone.yaml")
"""What fake kubelets do besides KWOK's own stages."""
KUBELET_LABEL: Final = {"surefoot.dev/e2e-kubelet": "kwok"}
"""Nodes with it have a kubelet; taking it away is the kubelet's death."""


class Cluster:
    """A running control plane and what tests do with it, as the administrator."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    @property
    def settings(self) -> ClusterSettings:
        """What it was started with."""
        return self.plane.settings

    @property
    def api(self) -> Api:
        """The API server, by path."""
        return self.plane.api

    @property
    def audit(self) -> Audit:
        """What the API server refused."""
        return self.plane.audit

    @property
    def directory(self) -> Path:
        """Where its logs are."""
        return self.plane.directory

    def kubectl(self, *words: str | Path, stdin: str = "") -> str:
        """What `kubectl WORDS` prints; it must succeed."""
        if not KUBECTL.exists():
            pytest.exit(f"{KUBECTL} is missing: `make e2e` installs it", returncode=1)
        done = subprocess.run(
            [KUBECTL, f"--kubeconfig={self.plane.kubeconfig}", *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode:
            pytest.fail(f"kubectl {' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, manifest: Path) -> None:
        """`kubectl apply` of a file, or of a kustomization by its directory."""
        flag = "--kustomize" if manifest.is_dir() else "--filename"
        self.kubectl("apply", "--server-side", flag, manifest)

    def service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig of this ServiceAccount, which may do what RBAC lets it, and no more."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        eventually(lambda: self.api.find(path), f"ServiceAccount {namespace}/{name}")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.api.create(f"{path}/token", request)["status"]["token"]
        return self.plane.kubeconfig_for(f"{namespace}-{name}", by_token(token))

    def user(self, name: str) -> Path:
        """A kubeconfig of a user by certificate, as static pods of a control plane have it."""
        pair = self.plane.authority.user(name)
        return self.plane.kubeconfig_for(name.replace(":", "-"), by_certificate(pair))


@contextmanager
def running(settings: ClusterSettings, binaries: Binaries, directory: Path) -> Iterator[Cluster]:
    """A cluster without nodes and without a scheduler, until the block ends."""
    with ExitStack() as stack:
        plane = ControlPlane(settings, binaries, directory)
        stack.callback(shutil.rmtree, directory / "etcd", ignore_errors=True)
        stack.callback(plane.kill)
        cluster = Cluster(plane.start())
        for manifest in ("kwok-rbac.yaml", "priorities.yaml"):
            cluster.apply(MANIFESTS / manifest)
        kwok = _kwok(cluster, binaries)
        stack.callback(kwok.kill)
        kwok.start()
        yield cluster


def _kwok(cluster: Cluster, binaries: Binaries) -> Process:
    stages = (*sorted(binaries.stages.iterdir()), *(MANIFESTS / name for name in OWN_STAGES))
    parts = [MANIFESTS / "kwok-config.yaml", *stages]
    config = cluster.directory / "kwok.yaml"
    config.write_text("\n---\n".join(part.read_text() for part in parts))
    return Process(
        [binaries.kwok, f"--kubeconfig={cluster.user(KWOK)}", f"--config={config}"],
        cluster.directory / "kwok.log",
    )
