"""deploy/alerts as a PrometheusRule of the Prometheus operator: the same groups in another wrapping."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import Final

_HEAD: Final = """\
# The rules of surefoot.yaml for the Prometheus operator. Some set-ups take only rules with a label of
# theirs, as `release`: see `ruleSelector` of your Prometheus.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: surefoot
  namespace: surefoot-system
spec:
"""


def prometheus_rule(deploy: Path) -> str:
    """The file beside `alerts/surefoot.yaml` in `deploy`, made of it."""
    text = (deploy / "alerts" / "surefoot.yaml").read_text(encoding="utf-8")
    return _HEAD + indent(text[text.index("groups:") :], "  ")
