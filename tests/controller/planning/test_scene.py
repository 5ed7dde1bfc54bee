"""The picture that plans rest on: the cache's word on health, the API server's on who holds what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from machines import dgx_h100
from strategies import NOW_S, fleet

from extender.controller.planning.scene import Look, Scene
from scoring import picture
from scoring.model import Allocation, Cause, Fleet, GpuUuid, Health, NodeName, PodUid
from scoring.policy import DEFAULT

N0, N1, N2 = map(NodeName, ("n0", "n1", "n2"))
SICK = {0: (Cause(id="xid.79", state=Health.RESET_REQUIRED),)}
Held = Mapping[NodeName, tuple[Allocation, ...]]


def nodes(*sick: NodeName, now_s: float = NOW_S) -> Fleet:
    """Three nodes, some of them with a bad GPU."""
    made = [dgx_h100(name=name, causes=SICK if name in sick else {}) for name in (N0, N1, N2)]
    return replace(fleet(*made), now_s=now_s)


def holds(
    pod: str, count: int = 2, node: NodeName = N0, gpus: frozenset[GpuUuid] | None = None
) -> Allocation:
    """GPUs of a pod."""
    return Allocation(
        node=node, uid=PodUid(pod), namespace="lab", pod=pod, resource="nvidia.com/gpu",
        count=count, gpus=gpus,
    )  # fmt: skip


def looked(scene: Scene, held: Held) -> Look:
    """A look at a cache that has spoken."""
    found = scene.look(held)
    assert found is not None
    return found


@pytest.fixture
def scene() -> Scene:
    """One that was looked at once."""
    made = Scene(DEFAULT)
    made.hear(nodes(), None)
    looked(made, {})
    return made


def test_there_is_nothing_to_see_before_the_cache_spoke() -> None:
    """And then everything is new."""
    made = Scene(DEFAULT)
    assert made.look({}) is None
    made.hear(nodes(), None)
    found = looked(made, {})
    assert found.before is None
    assert found.anew
    assert found.changed == {N0, N1, N2}


def test_a_second_look_sees_nothing_new(scene: Scene) -> None:
    """The same picture, where nothing was heard."""
    held: Held = {}
    first = looked(scene, held)
    again = looked(scene, held)
    assert again.changed == frozenset()
    assert again.picture is again.before is first.picture


def test_only_what_changed_is_named(scene: Scene) -> None:
    """By the cache, by pods, or by time; and the picture is that of the whole."""
    scene.hear(nodes(N1), {N1})
    found = looked(scene, {N2: (holds("a", node=N2),)})
    assert found.changed == {N1, N2}
    assert not found.anew
    fresh = picture.picture(found.picture.fleet, DEFAULT)
    assert found.picture.candidates == fresh.candidates
    late_s = NOW_S + DEFAULT.stale_after_s + 1
    scene.hear(nodes(N1, now_s=late_s), set())
    assert looked(scene, {}).changed == {N0, N1, N2}


def test_changes_between_two_looks_add_up(scene: Scene) -> None:
    """None of them is lost to the next."""
    scene.hear(nodes(N0), {N0})
    scene.hear(nodes(N0, N1), {N1})
    assert looked(scene, {}).changed == {N0, N1}


def test_a_cache_that_was_read_anew_changes_everything(scene: Scene) -> None:
    """Also a node that is gone."""
    scene.hear(fleet(dgx_h100(name="n0")), None)
    found = looked(scene, {})
    assert found.anew
    assert found.changed == {N0, N1, N2}
    assert found.picture.names == {N0}


def test_who_holds_gpus_is_the_api_servers_word(scene: Scene) -> None:
    """Whatever the cache has: it hears later."""
    scene.hear(replace(nodes(), allocations={N0: (holds("gone"),)}), {N0})
    found = looked(scene, {N1: (holds("new", node=N1),)})
    assert set(found.picture.fleet.allocations) == {N1}
    found = looked(scene, {})
    assert found.changed == {N1}
    assert found.picture.fleet.allocations == {}


def test_which_gpus_they_are_is_the_agents_word(scene: Scene) -> None:
    """Where it speaks of the same pod, node and number."""
    named = frozenset(map(GpuUuid, ("GPU-n0-0", "GPU-n0-1")))
    told = (holds("a", gpus=named), holds("b", count=1, gpus=named), holds("c"))
    held: Held = {N0: (holds("a"), holds("b"), holds("c"))}
    looked(scene, held)
    scene.hear(replace(nodes(), allocations={N0: told}), {N0})
    found = looked(scene, held)
    assert found.changed == {N0}
    assert found.picture.fleet.allocations[N0] == (holds("a", gpus=named), holds("b"), holds("c"))
    assert found.picture.candidates[N0].held == 0b11
    scene.hear(replace(nodes(), allocations=held), {N0})
    assert looked(scene, held).picture.fleet.allocations[N0] == held[N0]


def test_a_look_that_fails_loses_no_change(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one sees everything anew."""

    def stumbles(*_: object) -> None:
        raise ArithmeticError("a mistake")

    scene.hear(nodes(N1), {N1})
    with monkeypatch.context() as patch:
        patch.setattr(picture, "advanced", stumbles)
        with pytest.raises(ArithmeticError):
            scene.look({})
    found = looked(scene, {})
    assert found.anew
    assert N1 in found.changed
    assert found.picture.candidates[N1].alone[0] != found.picture.candidates[N0].alone[0]
