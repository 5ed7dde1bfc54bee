"""The taint surefoot.dev/unfit at the API server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from pools import POOL, fleet_of, names, of_state, seen
from servers import eventually
from signing import Stage, stage

from extender.controller.signs.signs import Signs
from scoring.model import Breaker, BreakerState, Health, NodeName
from scoring.picture import Picture

__all__ = ["stage"]

OURS = "surefoot.dev/unfit"
TEN = names(10)


@pytest.fixture
def signs(stage: Stage) -> Iterator[Signs]:
    """Signs of a leader that may taint."""
    yield from leading(stage, taint=True)


@pytest.fixture
def watching(stage: Stage) -> Iterator[Signs]:
    """Signs of a leader that may not."""
    yield from leading(stage, taint=False)


def leading(stage: Stage, *, taint: bool) -> Iterator[Signs]:
    """Signs that lead."""
    found = stage.signs(taint=taint)
    found.start()
    found.lead(7)
    yield found
    found.close()


def fleet(*bad: str) -> Picture:
    """Ten nodes, some of them unfit."""
    return seen(
        fleet_of(*[of_state(name, *([Health.FAILED] if name in bad else [])) for name in TEN])
    )


def shown(stage: Stage, signs: Signs, picture: Picture, seconds: int = 15) -> None:
    """Show the signs a picture, and let time pass."""
    signs.on_fleet(picture, picture, picture.names)
    for _ in range(seconds):
        signs.tick()
        stage.clock.pass_s(1.0)
        eventually(lambda: signs.taints.outbox.pending == 0, "all taints are sent")


def tainted(stage: Stage) -> list[str]:
    """The nodes that carry it."""
    return [name for name in TEN if OURS in stage.taints(name)]


def becomes(stage: Stage, *found: str) -> None:
    """Wait until exactly these carry it."""
    eventually(lambda: tainted(stage) == list(found), f"{found} are tainted")


def test_an_unfit_node_is_tainted_until_it_is_fit(stage: Stage, signs: Signs) -> None:
    """Other taints stand before, between and after, in their order."""
    taints: dict[str, Sequence[str]] = {"n3": ("team", "disk")}
    stage.add_nodes(*TEN, **taints)
    shown(stage, signs, fleet("n3"))
    becomes(stage, "n3")
    assert stage.taints("n3") == ["team", "disk", OURS]
    body = stage.api.get("nodes", "n3") or {}
    body["spec"]["taints"].append({"key": "late", "effect": "NoSchedule"})
    stage.api.set("nodes", body)
    shown(stage, signs, fleet())
    becomes(stage)
    assert stage.taints("n3") == ["team", "disk", "late"]


def test_a_node_without_taints_gets_the_first(stage: Stage, signs: Signs) -> None:
    """Its list is made, and empty again afterwards."""
    stage.add_nodes(*TEN)
    shown(stage, signs, fleet("n3"))
    becomes(stage, "n3")
    body = stage.api.get("nodes", "n3") or {}
    assert body["spec"]["taints"] == [{"key": OURS, "effect": "NoSchedule"}]
    shown(stage, signs, fleet())
    becomes(stage)


def test_a_share_of_the_pool_is_tainted_slowly(stage: Stage, signs: Signs) -> None:
    """Two nodes of ten at most, one a second; the rest is counted."""
    stage.add_nodes(*TEN)
    for seconds in range(1, 5):
        shown(stage, signs, fleet("n1", "n2", "n3", "n4"), seconds=1)
        assert len(tainted(stage)) <= seconds
    shown(stage, signs, fleet("n1", "n2", "n3", "n4"))
    becomes(stage, "n1", "n2")
    found = signs.taints
    assert (found.unfit, found.chosen, found.withheld) == (4, 2, 2)


def test_off_it_only_counts_and_cleans_up(stage: Stage, watching: Signs) -> None:
    """What would be tainted can be seen first; taints of an earlier time go."""
    stage.add_nodes(*TEN, n1=[OURS], n5=["team", OURS])
    shown(stage, watching, fleet("n1", "n2", "n3"))
    becomes(stage)
    assert stage.taints("n5") == ["team"]
    found = watching.taints
    assert (found.unfit, found.chosen, found.withheld) == (3, 2, 1)


def test_no_taint_comes_while_the_breaker_is_open(stage: Stage, signs: Signs) -> None:
    """And none goes: the nodes are as unfit as before."""
    stage.add_nodes(*TEN, n1=[OURS])
    word = Breaker(pool=POOL, state=BreakerState.OPEN, until_s=1e9)
    picture = fleet("n1", "n2")
    shown(stage, signs, seen(replace(picture.fleet, breakers={POOL: word})))
    assert tainted(stage) == ["n1"]


def test_a_node_that_changed_meanwhile_is_looked_at_again(stage: Stage, signs: Signs) -> None:
    """The patch tests the version that the decision rests on: nobody's taint is lost."""
    stage.add_nodes(*TEN)
    really = stage.view.marks
    old = really()
    stage.add_nodes("n3", n3=["team"])
    stage.view.marks = lambda: old  # type: ignore[method-assign]
    shown(stage, signs, fleet("n3"), seconds=3)
    assert stage.taints("n3") == ["team"]
    stage.view.marks = really  # type: ignore[method-assign]
    shown(stage, signs, fleet("n3"))
    becomes(stage, "n3")
    assert stage.taints("n3") == ["team", OURS]
    assert signs.taints.outbox.failed == 0


def test_a_node_that_is_not_in_the_fleet_loses_the_taint(stage: Stage, signs: Signs) -> None:
    """Its document is gone, so nobody can say that it is unfit."""
    stage.add_nodes(*TEN, n1=[OURS])
    picture = fleet("n1")
    shown(stage, signs, picture)
    becomes(stage, "n1")
    gone = {name: node for name, node in picture.fleet.nodes.items() if name != "n1"}
    after = seen(replace(picture.fleet, nodes=gone))
    signs.on_fleet(picture, after, {NodeName("n1")})
    shown(stage, signs, after)
    becomes(stage)


def test_nothing_is_removed_before_all_nodes_are_judged(stage: Stage, signs: Signs) -> None:
    """A new leader of a large fleet knows for some ticks only a part of it."""
    many = names(1_200)
    stage.add_nodes("n1199", n1199=[OURS])
    nodes = [of_state(name, *([Health.FAILED] if name == "n1199" else [])) for name in many]
    picture = seen(fleet_of(*nodes))
    signs.on_fleet(None, picture, None)
    for _ in range(6):
        signs.tick()
        stage.clock.pass_s(1.0)
        assert stage.taints("n1199") == [OURS]
    assert signs.taints.unfit == 1
