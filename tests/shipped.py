"""The files below deploy/, as their users copy them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

DEPLOY: Final = Path(__file__).resolve().parents[1] / "deploy"
CONFIGS: Final = DEPLOY / "scheduler-config"
KUSTOMIZE: Final = DEPLOY / "kustomize"
TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a client inside a pod looks for its ServiceAccount."""


def config(name: str) -> Any:
    """What kube-scheduler reads from `NAME.yaml`."""
    return yaml.safe_load((CONFIGS / f"{name}.yaml").read_text(encoding="utf-8"))


def extender(name: str) -> Any:
    """Its one extender."""
    (found,) = config(name)["extenders"]
    return found


def profiles(name: str) -> dict[str, Any]:
    """Its profiles by the name that pods give."""
    return {each["schedulerName"]: each for each in config(name)["profiles"]}


def settings(name: str) -> Any:
    """What Surefoot reads beside it."""
    return yaml.safe_load((CONFIGS / "surefoot" / f"{name}.yaml").read_text(encoding="utf-8"))
