"""deploy/alerts: the shape that Prometheus reads, and alerts that people can act on."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
import shipped
import yaml

ALERTS: Final = shipped.DEPLOY / "alerts"
DOCS: Final = shipped.DEPLOY.parent / "docs"
DURATION: Final = re.compile(r"([0-9]+(ms|[smhdwy]))+")
METRIC: Final = re.compile(r"\bsurefoot_[a-z_]+")
QUOTED: Final = re.compile(r'"[^"]*"')
PAIRS: Final = {")": "(", "]": "[", "}": "{"}
RULE_FIELDS: Final = {"alert", "expr", "for", "labels", "annotations"}


def _groups() -> list[Any]:
    found = yaml.safe_load((ALERTS / "surefoot.yaml").read_text(encoding="utf-8"))
    assert set(found) == {"groups"}
    return list(found["groups"])


RULES: Final = [rule for group in _groups() for rule in group["rules"]]
each_rule: Final = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


def _is_balanced(expression: str) -> bool:
    """Whether each bracket closes the one that was opened last."""
    opened: list[str] = []
    for character in QUOTED.sub('""', expression):
        if character in PAIRS.values():
            opened.append(character)
        elif character in PAIRS and (not opened or opened.pop() != PAIRS[character]):
            return False
    return not opened


def test_groups_and_alerts_have_names_of_their_own() -> None:
    """Prometheus refuses a file in which a group comes twice."""
    groups = [group["name"] for group in _groups()]
    alerts = [rule["alert"] for rule in RULES]
    assert len(set(groups)) == len(groups)
    assert len(set(alerts)) == len(alerts)


@each_rule
def test_a_rule_has_the_shape_that_prometheus_reads(rule: Any) -> None:
    """No field is misspelt, durations are Prometheus' own, brackets close."""
    assert set(rule) == RULE_FIELDS
    assert rule["alert"].isidentifier()
    assert DURATION.fullmatch(rule["for"])
    assert _is_balanced(rule["expr"])
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert all(_is_balanced(text) for text in rule["annotations"].values())


@each_rule
def test_a_rule_reads_surefoots_metrics_and_names_no_node_or_pod(rule: Any) -> None:
    """Metrics have labels of kinds and reasons alone, so an alert is one, not one for each pod."""
    assert METRIC.search(rule["expr"])
    assert not re.search(r"\b(node|pod|gpu)\b", rule["expr"])


@each_rule
def test_an_alert_is_a_sentence_and_stands_in_the_documentation(rule: Any) -> None:
    """docs/operations.md says of each what it means."""
    assert set(rule["annotations"]) == {"summary", "description"}
    assert rule["annotations"]["summary"].endswith(".")
    assert f"`{rule['alert']}`" in (DOCS / "operations.md").read_text(encoding="utf-8")


def test_the_documentation_names_no_alert_that_is_not_there() -> None:
    """Nor an old name."""
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(Surefoot[A-Z]\w+)`", text)) == {rule["alert"] for rule in RULES}


def test_the_operators_rule_holds_the_same_groups() -> None:
    """`python -m extender.rendering` makes the one from the other."""
    text = (ALERTS / "prometheus-rule.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["spec"] == {"groups": _groups()}
