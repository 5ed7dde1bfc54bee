"""How each program is built from Go modules. A change in here builds everything anew.

Each function builds in `work`, which holds the sources of its recipe, and leaves what is to be kept
in `kept`. Errors are BuildErrors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from e2e.go import Go, Module

KUBERNETES: Final = "k8s.io/kubernetes"
ETCD: Final = "go.etcd.io/etcd/server/v3"
KWOK: Final = "sigs.k8s.io/kwok"
STAGES: Final = (
    "pod/fast/pod-ready.yaml",
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
)
"""What a fake kubelet does."""


def control_plane(go: Go, version: str, work: Path, kept: Path) -> None:
    """etcd, kube-apiserver, kube-controller-manager and kube-scheduler as one program."""
    kubernetes = Module(path=KUBERNETES, version=f"v{version}")
    module = go.requirements(work, kubernetes)
    staged = f"v0.{version.partition('.')[2]}"
    go.run(work, "mod", "init", "surefoot.dev/e2e/control-plane")
    go.run(
        work,
        "mod",
        "edit",
        f"-require={kubernetes.path}@{kubernetes.version}",
        f"-require={ETCD}@{module.requires[ETCD]}",
        *(f"-replace={each}={each}@{staged}" for each in module.staged),
    )
    go.run(work, "mod", "tidy")
    # Clients refuse a server that calls itself v0.0.0.
    stamp = f"-X k8s.io/component-base/version.gitVersion=v{version}"
    _compile(go, work, kept / "control-plane", ".", stamp)


def kwok(go: Go, version: str, work: Path, kept: Path) -> None:
    """KWOK, and what its module says that fake kubelets do."""
    go.run(work, "mod", "init", "surefoot.dev/e2e/kwok")
    go.run(work, "mod", "edit", f"-require={KWOK}@v{version}")
    go.run(work, "mod", "tidy")
    _compile(go, work, kept / "kwok", f"{KWOK}/cmd/kwok")
    source = Path(go.run(work, "list", "-m", "-f", "{{.Dir}}", KWOK).strip())
    (kept / "stages").mkdir()
    for stage in STAGES:
        text = (source / "kustomize" / "stage" / stage).read_text()
        (kept / "stages" / Path(stage).name).write_text(text)


def _compile(go: Go, work: Path, program: Path, package: str, stamp: str = "") -> None:
    flags = f"-ldflags=-s -w {stamp}".rstrip()
    go.run(work, "build", "-trimpath", "-buildvcs=false", flags, "-o", str(program), package)
