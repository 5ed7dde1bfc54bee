"""What must hold of gangs at every moment, whoever dies and whatever turns bad."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from e2e import versions
from e2e.cluster import Cluster
from e2e.history import PodState, Scene

KEPT_SINCE: Final = "1.35"
"""Before it kube-scheduler clears the nomination of every pod that it cannot place at once, as one whose
plan has not come to Surefoot's replica yet. The controller writes it again; until then the gang may be
half.
"""


def nominations_are_kept(cluster: Cluster) -> bool:
    """Whether a failed attempt leaves the nomination alone."""
    return versions.numbers(cluster.settings.version) >= versions.numbers(KEPT_SINCE)


def of_gang(scene: Scene, gang: str) -> Mapping[str, PodState]:
    """The members that have not finished."""
    return {
        name: state for name, state in scene.items() if state.gang == gang and not state.finished
    }


def gangs_of(scene: Scene) -> set[str]:
    """Every gang of a scene."""
    return {state.gang for state in scene.values() if state.gang}


def is_half(members: Iterable[PodState]) -> bool:
    """Whether one is bound beside one that holds no room: what must never be."""
    there = list(members)
    return any(state.node for state in there) and any(state.holds is None for state in there)


def twice(scene: Scene) -> set[str]:
    """Nodes that two pods hold, bound or nominated, where each asks for the whole node."""
    held = Counter(state.holds for state in scene.values() if state.holds)
    return {node for node, times in held.items() if times > 1}


def assert_planned(scenes: Iterable[Scene], ran: Mapping[str, str]) -> None:
    """Each pod was nominated to its node before it was bound there."""
    promised = {
        (name, state.nominated)
        for scene in scenes
        for name, state in scene.items()
        if state.node is None
    }
    assert set(ran.items()) - promised == set()


def assert_never_half(scenes: Iterable[Scene]) -> None:
    """Gangs of whole nodes hold room for all of them, or have no member bound; no room is promised
    twice.
    """
    for number, scene in enumerate(scenes):
        half = {gang for gang in gangs_of(scene) if is_half(of_gang(scene, gang).values())}
        assert half == set(), f"after change {number}: {scene}"
        assert twice(scene) == set(), f"after change {number}: {scene}"
