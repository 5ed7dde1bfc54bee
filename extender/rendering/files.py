"""Every file of a site by its name, and those that are shipped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from extender.rendering.alerts import prometheus_rule
from extender.rendering.scheduler import scheduler_page
from extender.rendering.shapes import Name
from extender.rendering.site import Site, site
from extender.rendering.surefoot import surefoot_page

DEPLOY: Final = Path(__file__).resolve().parents[2] / "deploy"


def pair(wishes: Site) -> Mapping[str, str]:
    """kube-scheduler's file of one profile and Surefoot's, by their path."""
    return {
        f"{wishes.name}.yaml": scheduler_page(wishes),
        f"surefoot/{wishes.name}.yaml": surefoot_page(wishes),
    }


def shipped() -> Mapping[str, str]:
    """The rendered files below deploy/, by their path there.

    Those of kustomize are copies: it reads nothing outside its own folder. So are the alerts of the
    Prometheus operator.
    """
    pairs = {key: text for name in Name for key, text in pair(site(name)).items()}
    return {
        **{f"scheduler-config/{key}": text for key, text in pairs.items()},
        **{f"kustomize/{key}": pairs[source] for key, source in _COPIES.items()},
        "alerts/prometheus-rule.yaml": prometheus_rule(DEPLOY),
    }


_COPIES: Final[Mapping[str, str]] = {
    "base/surefoot.yaml": "surefoot/extender.yaml",
    "overlays/observe/surefoot.yaml": "surefoot/observe.yaml",
    "overlays/secondary/surefoot.yaml": "surefoot/secondary.yaml",
    "overlays/secondary/kube-scheduler.yaml": "secondary.yaml",
    "overlays/tls/surefoot.yaml": "surefoot/tls.yaml",
}


def stale(deploy: Path = DEPLOY) -> list[str]:
    """The shipped files that are missing or differ from what would be rendered now."""
    return [
        name
        for name, text in shipped().items()
        if not (deploy / name).is_file() or (deploy / name).read_text(encoding="utf-8") != text
    ]
