"""No plan before the cache has the nodes that the API server has."""

from __future__ import annotations

from dataclasses import replace

from pools import fleet_of, names, of_state, seen

from extender.controller.planning.coverage import PATIENCE_S, Coverage
from extender.controller.planning.scene import Look

FOUR = frozenset(names(4))


def look(told: int, *, anew: bool = False) -> Look:
    """A cache with documents of four nodes, of which it knows so many to be in the cluster."""
    fleet = fleet_of(*(of_state(name) for name in sorted(FOUR)))
    cluster = {name: fleet.cluster[name] for name in sorted(FOUR)[:told]}
    picture = seen(replace(fleet, cluster=cluster))
    return Look(picture=picture, before=None, changed=frozenset(), anew=anew)


def test_an_empty_cache_is_waited_for() -> None:
    """Until it has the last node."""
    coverage = Coverage()
    assert [coverage.whole(look(told), FOUR, 1.0) for told in (0, 3, 4)] == [False, False, True]


def test_a_cache_that_is_full_holds_up_nothing() -> None:
    """The leader before has filled it."""
    assert Coverage().whole(look(4), FOUR, 1.0)


def test_a_node_that_comes_later_holds_up_nothing() -> None:
    """Plans go on without it for the moment that it takes."""
    coverage = Coverage()
    coverage.whole(look(3), frozenset(names(3)), 1.0)
    assert coverage.whole(look(3), FOUR, 2.0)


def test_a_cache_that_is_read_anew_may_have_lost_nodes() -> None:
    """And so may that of the next term."""
    coverage = Coverage()
    coverage.whole(look(4), FOUR, 1.0)
    assert not coverage.whole(look(0, anew=True), FOUR, 2.0)
    assert coverage.whole(look(4), FOUR, 3.0)
    coverage.begin()
    assert not coverage.whole(look(0), FOUR, 4.0)


def test_a_node_that_never_comes_is_not_waited_for_forever() -> None:
    """Where its object cannot be read, say."""
    coverage = Coverage()
    assert not coverage.whole(look(3), FOUR, 1.0)
    assert coverage.whole(look(3), FOUR, 1.0 + PATIENCE_S)
