"""deploy/kustomize/base/rbac.yaml grants what the controller reads, and nothing that it does not."""

from __future__ import annotations

from typing import Any

import shipped
import yaml

from extender.config.model import LeaseConfig
from extender.controller.cluster.groups import SOURCES

READS = {"get", "list", "watch"}


def _rules(kind: str, name: str) -> list[Any]:
    documents = yaml.safe_load_all((shipped.KUSTOMIZE / "base" / "rbac.yaml").read_text("utf-8"))
    (found,) = (
        each for each in documents if each["kind"] == kind and each["metadata"]["name"] == name
    )
    return list(found["rules"])


def test_every_kind_by_which_gangs_are_known_may_be_read_and_no_other() -> None:
    """The table of sources is the list: a kind that is added there is to be added here."""
    rules = _rules("ClusterRole", "surefoot-controller-reads")
    granted = {
        (group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == {("", "pods"), ("", "nodes")} | {
        (each.group, each.resource) for each in SOURCES
    }
    assert all(set(rule["verbs"]) == READS for rule in rules)


def test_what_it_changes_is_written_to_core_kinds_alone() -> None:
    """Events too (`signs.paths`), so no other group is granted."""
    rules = _rules("ClusterRole", "surefoot-controller-acts")
    assert {group for rule in rules for group in rule["apiGroups"]} == {""}
    granted = {resource: set(rule["verbs"]) for rule in rules for resource in rule["resources"]}
    assert granted == {
        "pods": {"patch"},
        "pods/status": {"patch"},
        "nodes/status": {"patch"},
        "events": {"create", "patch"},
    }


def test_the_lease_that_may_be_renewed_is_the_one_that_is_taken() -> None:
    """By its default name."""
    names = [rule.get("resourceNames") for rule in _rules("Role", "surefoot-controller")]
    assert names == [None, [LeaseConfig().name]]
