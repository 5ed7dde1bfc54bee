"""Gathered gangs: seats that stand, and room that evictions would make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import members
import sites
from hypothesis import given
from hypothesis import strategies as st
from sites import Cluster, cluster, racked

from scoring import picture
from scoring.gangs.evicting import Rest, left_with
from scoring.gangs.planning import outcomes, unready
from scoring.gangs.record import GangState
from scoring.gangs.rules import OnShortfall
from scoring.gangs.values import Gathered
from scoring.model import GangKey
from scoring.picture import Picture
from scoring.planning.outcome import Lack, Outcome, Plan, Shortfall
from scoring.planning.values import PendingGang

EVICTS = OnShortfall.PREEMPT


def gathered(of: PendingGang, on_shortfall: OnShortfall = OnShortfall.WAIT) -> Gathered:
    """A gang of which the planner's side is given."""
    return members.gang(key=of.key, pending=of, on_shortfall=on_shortfall, min=of.min)


def train(name: str, count: int, **more: Any) -> PendingGang:
    """A gang of members that take a whole node each."""
    return sites.gang(*[sites.shape()] * count, name=name, **more)


def scene(of: Cluster) -> Picture:
    """The picture of a cluster."""
    return picture.picture(of.fleet, of.policy)


def without(of: Cluster, priorities: Mapping[str, int]) -> Callable[[int], Rest]:
    """What is left below a priority, where the pods of a node have the one given here, or 0."""

    def rest(below: int) -> Rest:
        held = {
            name: them if priorities.get(name, 0) >= below else ()
            for name, them in of.fleet.allocations.items()
        }
        return Rest(held=held, rooms=of.site.rooms)

    return rest


def planned(of: Cluster, *gangs: Gathered, priority: int = 0) -> dict[str, Outcome]:
    """What becomes of gangs, where all tenants have `priority`."""
    priorities = dict.fromkeys(map(str, of.fleet.allocations), priority)
    found = outcomes(scene(of), of.site, gangs, {}, without(of, priorities))
    return {key.rpartition("/")[2]: outcome for key, outcome in found.items()}


def test_a_gang_that_may_evict_is_planned_where_it_fits_whole_then() -> None:
    """As if pods of lower priority were gone."""
    full = cluster(*racked(2, per_rack=2), held={"n0": 8, "n1": 8})
    found = planned(full, gathered(train("a", 2, priority=5), EVICTS))["a"]
    assert isinstance(found, Plan)
    assert set(found.places.values()) == {"n0", "n1"}


def test_a_gang_that_would_not_fit_even_then_evicts_nobody() -> None:
    """No pod goes in vain."""
    full = cluster(*racked(2, per_rack=2), held={"n0": 8, "n1": 8})
    assert isinstance(planned(full, gathered(train("a", 3, priority=5), EVICTS))["a"], Shortfall)


def test_pods_of_the_same_priority_are_not_counted_free() -> None:
    """Only lower ones."""
    full = cluster(*racked(2, per_rack=2), held={"n0": 8, "n1": 8})
    waits = gathered(train("a", 2, priority=5), EVICTS)
    assert isinstance(planned(full, waits, priority=5)["a"], Shortfall)


def test_a_gang_that_may_not_evict_waits() -> None:
    """That is the default."""
    full = cluster(*racked(2, per_rack=2), held={"n0": 8, "n1": 8})
    assert isinstance(planned(full, gathered(train("a", 2, priority=5)))["a"], Shortfall)


def test_room_that_another_gang_was_given_is_not_taken_by_eviction() -> None:
    """What stood before stands."""
    half = cluster(*racked(2, per_rack=2), held={"n0": 8})
    first = gathered(train("a", 1, priority=9))
    found = planned(half, first, gathered(train("b", 2, priority=5), EVICTS))
    assert isinstance(found["a"], Plan)
    assert isinstance(found["b"], Shortfall)


def test_a_seat_whose_nomination_is_on_its_way_stays() -> None:
    """Two racks are alike, and only the record tells which one it was."""
    wide = cluster(*racked(4, per_rack=2))
    of = train("a", 2)
    gang = gathered(of)
    pods = tuple(members.pod(at) for at in range(2))
    kept = members.record(members.gang(*pods), GangState.PLANNED, "n2", "n3")
    seats = dict(zip((each.uid for each in of.members), kept.seats.values(), strict=True))
    found = outcomes(
        scene(wide), wide.site, [gang], {of.key: replace(kept, gang=of.key, seats=seats)}
    )[of.key]
    assert isinstance(found, Plan)
    assert list(found.places.values()) == ["n2", "n3"]


names = st.sampled_from(["n0", "n1", "n2"])


@given(st.dictionaries(names, st.integers(1, 8)), st.dictionaries(names, st.integers(0, 4)))
def test_nothing_is_free_that_was_not_of_a_lower_priority(
    held: dict[str, int], priorities: dict[str, int]
) -> None:
    """Law: only the GPUs of pods below the priority are given back, and those that stay keep theirs
    by name.
    """
    of = cluster(*racked(3, per_rack=3), held=held)
    after, _ = left_with(scene(of), of.site, without(of, priorities)(2))
    for name, them in of.fleet.allocations.items():
        assert after.fleet.allocations[name] == (them if priorities.get(name, 0) >= 2 else ())
        free = after.candidates[name].free.bit_count()
        assert free == 8 - (held[name] if priorities.get(name, 0) >= 2 else 0)


def test_keys_are_those_of_the_gangs() -> None:
    """Each gang of which something is to be planned has one outcome."""
    of = cluster(*racked(2, per_rack=2))
    found = outcomes(scene(of), of.site, [gathered(train("a", 1)), members.gang()], {})
    assert list(found) == [GangKey("ml/a")]


def test_a_gang_of_which_pods_are_missing_is_told_so_without_a_plan() -> None:
    """Whatever room there is."""
    short = gathered(train("a", 2, least=3))
    found = unready([short, gathered(train("b", 2)), members.gang()])
    assert [(key, each.lack) for key, each in found.items()] == [
        (GangKey("ml/a"), Lack.MEMBERS_MISSING)
    ]
