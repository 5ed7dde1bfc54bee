"""deploy/alerts reads what the processes serve: a metric that is renamed makes an alert silent."""

from __future__ import annotations

import re

import shipped
import yaml

from e2e.fixtures import MakesController, MakesSurefoot
from e2e.gating import gated
from e2e.pods import Pods, pod
from e2e.waiting import eventually

SUFFIX = re.compile(r"_(bucket|count|sum)$")


def test_every_metric_of_an_alert_is_served(
    surefoot: MakesSurefoot, controller: MakesController
) -> None:
    """By `serve` or by the controller, before anything has happened."""
    groups = yaml.safe_load((shipped.DEPLOY / "alerts" / "surefoot.yaml").read_text("utf-8"))
    read = {
        SUFFIX.sub("", metric)
        for group in groups["groups"]
        for rule in group["rules"]
        for metric in re.findall(r"\bsurefoot_[a-z_]+", rule["expr"])
    }
    pages = surefoot().metrics() + controller().metrics()
    served = {SUFFIX.sub("", name) for name in re.findall(r"^# TYPE (\S+)", pages, re.MULTILINE)}
    assert read - served == set()


def test_gates_that_wait_are_counted_by_whoever_stands_by(
    pods: Pods, controller: MakesController
) -> None:
    """So that the alert speaks though nobody leads."""
    both = [controller(name=name) for name in ("one", "two")]
    pods.create(gated(pod("rank-0", gang="train", size=2)))
    for each in both:
        eventually(
            lambda it=each: it.values().get("surefoot_gang_gates_waiting") == 1,  # type: ignore[misc]
            "it is counted",
        )
