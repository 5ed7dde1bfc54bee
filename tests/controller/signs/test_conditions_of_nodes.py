"""The condition GpuHealthDegraded at the API server."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from kubes import Call, refuses
from machines import dgx_h100
from pools import fleet_of, names, of_state, seen
from servers import eventually
from signing import Json, Stage, stage

from extender.controller.signs.conditions import RATE_HZ
from extender.controller.signs.signs import Signs
from scoring.conditions import TYPE, Status
from scoring.model import Cause, Health, NodeName
from scoring.picture import Picture

__all__ = ["stage"]

N0 = NodeName("n0")
WELL = seen(fleet_of(of_state("n0")))
THEIRS = {
    "type": TYPE,
    "status": "False",
    "reason": "GpusHealthy",
    "message": "by the next leader",
}
BAD = seen(fleet_of(of_state("n0", Health.RESET_REQUIRED)))


@pytest.fixture
def signs(stage: Stage) -> Iterator[Signs]:
    """Signs of a leader in a cluster of one node."""
    stage.add_nodes("n0")
    found = stage.signs()
    found.start()
    found.lead(7)
    yield found
    found.close()


def shown(stage: Stage, signs: Signs, picture: Picture, *changed: str, seconds: int = 1) -> None:
    """Show the signs a picture, and let time pass."""
    signs.on_fleet(picture, picture, frozenset(map(NodeName, changed)))
    for _ in range(10 * seconds):
        signs.tick()
        eventually(lambda: signs.conditions.outbox.pending == 0, "all conditions are sent")
        stage.clock.pass_s(0.1)


def writes(stage: Stage) -> list[Json]:
    """Every condition that was written."""
    found = [each for each in list(stage.api.writes) if each.route.part == "status"]
    return [each.json["status"]["conditions"][0] for each in found]


def becomes(stage: Stage, name: str, status: str) -> Json:
    """The condition of a node, once it has this status."""

    def found() -> Json | None:
        there = stage.condition(name)
        return there if there and there["status"] == status else None

    there = eventually(found, f"{name} is {status}")
    assert there is not None
    return there


def test_a_node_shows_its_gpus_health(stage: Stage, signs: Signs) -> None:
    """False, True with the cause, and False again; other conditions are left alone."""
    shown(stage, signs, WELL, seconds=2)
    first = becomes(stage, "n0", "False")
    shown(stage, signs, BAD, "n0")
    found = becomes(stage, "n0", "True")
    assert (found["reason"], found["message"]) == ("MadeUp", "GPU 0: RESET_REQUIRED by made.up")
    assert found["lastTransitionTime"] > first["lastTransitionTime"]
    shown(stage, signs, WELL, "n0")
    becomes(stage, "n0", "False")
    body = stage.api.get("nodes", "n0") or {}
    assert [each["type"] for each in body["status"]["conditions"]] == ["Ready", "GpuHealthDegraded"]


def test_each_turn_is_an_event_on_the_node(stage: Stage, signs: Signs) -> None:
    """The first False is none: that a node is well is no news."""
    for picture in (WELL, BAD, WELL):
        shown(stage, signs, picture, "n0")
    eventually(lambda: len(stage.events()) == 2, "two turns are told")
    told = [(each["type"], each["reason"]) for each in stage.events()]
    assert told == [("Warning", "MadeUp"), ("Normal", "GpusHealthy")]


def test_what_stands_is_not_written(stage: Stage, signs: Signs) -> None:
    """However often the node is looked at, and by whichever leader."""
    shown(stage, signs, BAD, "n0", seconds=200)
    assert len(writes(stage)) == 1
    other = stage.signs()
    other.start()
    other.lead(8)
    shown(stage, other, BAD, "n0", seconds=100)
    other.close()
    assert len(writes(stage)) == 1


def test_evidence_alone_is_written_every_five_minutes(stage: Stage, signs: Signs) -> None:
    """A counter that moves with every poll does not write with every poll; the status did not turn."""
    for step in range(60):
        cause = Cause(id="rate.dbe", state=Health.DEGRADED, evidence=f"{step} per hour")
        picture = seen(fleet_of(dgx_h100(name="n0", causes={0: (cause,)})))
        shown(stage, signs, picture, "n0", seconds=10)
    found = writes(stage)
    assert 2 <= len(found) <= 3
    assert ["lastTransitionTime" in each for each in found] == [True, *[False] * (len(found) - 1)]


def test_what_somebody_removed_is_written_again(stage: Stage, signs: Signs) -> None:
    """A node that registers anew has lost it; a look at all nodes a minute finds out."""
    shown(stage, signs, BAD)
    becomes(stage, "n0", "True")
    stage.add_nodes("n0")
    shown(stage, signs, BAD, seconds=70)
    becomes(stage, "n0", "True")


def test_a_document_that_is_gone_leaves_no_old_word(stage: Stage, signs: Signs) -> None:
    """The node is said to be unknown; one that never had a word gets none."""
    stage.add_nodes("other")
    shown(stage, signs, BAD)
    becomes(stage, "n0", "True")
    shown(stage, signs, seen(fleet_of()), "n0", seconds=20)
    assert becomes(stage, "n0", "Unknown")["reason"] == "NodeUnreported"
    assert stage.condition("other") is None
    assert signs.conditions.due == 0


def test_writes_are_paced(stage: Stage, signs: Signs) -> None:
    """A fleet that turns at once is written at a bounded rate, and to its end."""
    many = names(100)
    stage.add_nodes(*many)
    picture = seen(fleet_of(*[of_state(name, Health.SUSPECT) for name in many]))
    shown(stage, signs, picture, *many)
    assert len(writes(stage)) <= 2 * RATE_HZ
    shown(stage, signs, picture, seconds=6)
    eventually(lambda: len(writes(stage)) == 100, "all are written")
    shown(stage, signs, picture, seconds=60)
    assert len(writes(stage)) == 100
    assert signs.conditions.counts[Status.TRUE] == 100


def test_a_late_write_changes_nothing_where_the_node_changed(stage: Stage, signs: Signs) -> None:
    """The one request that a stopped leader has on its way is refused by the node's version; what is
    to be said is found out again from the node as it is then.
    """
    on_its_way, release = threading.Event(), threading.Event()

    def slowly(call: Call) -> None:
        if call.route.part == "status":
            on_its_way.set()
            release.wait(60)

    stage.api.heeding = slowly
    signs.on_fleet(BAD, BAD, frozenset({N0}))
    signs.tick()
    assert on_its_way.wait(10)
    stage.api.edit("nodes", "n0", lambda node: node["status"]["conditions"].append(THEIRS))
    release.set()
    eventually(lambda: signs.conditions.vain == 1, "the write was in vain")
    assert stage.condition("n0") == THEIRS
    shown(stage, signs, BAD)
    assert becomes(stage, "n0", "True")["reason"] == "MadeUp"
    assert signs.conditions.outbox.failed == 0


def test_a_write_that_fails_is_made_again(stage: Stage, signs: Signs) -> None:
    """With the next look at all nodes; a node that is gone is no error."""
    for _ in range(2):  # for the event too
        stage.api.faults["write"].append(refuses(500, "etcd is slow"))
    shown(stage, signs, BAD, "n0")
    eventually(lambda: signs.conditions.outbox.failed == 1, "the write failed")
    for _ in range(2):
        stage.api.faults["write"].append(refuses(404, "nodes not found"))
    shown(stage, signs, BAD, seconds=61)
    shown(stage, signs, BAD, seconds=61)
    becomes(stage, "n0", "True")
    assert signs.conditions.outbox.failed == 1
