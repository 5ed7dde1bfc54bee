"""What the generated pages say of settings and causes is so."""

from __future__ import annotations

import re

import pages

from extender.config import policies
from scoring.policy import DEFAULT
from scoring.settings import settings
from scoring.xid.rules import EFFECTS


def test_clear_rules_name_settings_that_exist() -> None:
    """Whoever looks one up finds it under `policy`."""
    rules = pages.text("docs/health.md").partition("### Clear rules")[2].partition("\n## ")[0]
    known = {policies.camel(path.rpartition(".")[2]) for path, _, _ in settings(DEFAULT)}
    named = set(re.findall(r"`([a-z]+[A-Z]\w+)`", rules))
    assert "rateClear" in named
    assert named <= known


def test_the_effects_of_a_code_are_listed() -> None:
    """The field says which words it takes."""
    (row,) = re.findall(r"^\| `xid` \|.*$", pages.text("docs/configuration.md"), re.MULTILINE)
    assert "map of a code to" in row
    assert all(f"`{word}`" in row for word in EFFECTS)


def test_both_causes_named_stale_are_told_apart() -> None:
    """One is UNMONITORED at first, the other UNKNOWN."""
    derived = pages.text("docs/health.md").partition("## Causes that follow from a document")[2]
    assert "There are two of that name" in derived.partition("\n| ")[0]
