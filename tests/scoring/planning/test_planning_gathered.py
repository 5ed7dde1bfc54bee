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


def test_of_two_gangs_that_may_evict_the_stronger_one_is_served() -> None:
    """Evictions are planned in the order of gangs, whatever their names are."""
    full = cluster(*racked(1, per_rack=2), held={"n0": 8})
    weak, strong = train("a", 1, priority=3), train("b", 1, priority=9)
    found = planned(full, gathered(weak, EVICTS), gathered(strong, EVICTS))
    assert isinstance(found["b"], Plan)
    assert isinstance(found["a"], Shortfall)


def test_what_the_first_victims_leave_is_kept_until_the_last_are_gone() -> None:
    """Else a gang behind would take it, and the victims would have gone in vain."""
    half = cluster(*racked(2, per_rack=2), held={"n1": 8})
    evicting = train("z", 2, priority=5, nominated={0: "n0", 1: "n1"})
    found = planned(half, gathered(evicting, EVICTS), gathered(train("b", 1)), priority=-1)
    assert isinstance(found["z"], Plan)
    assert isinstance(found["b"], Shortfall)


def test_who_evicts_spares_the_nominations_of_those_behind_where_it_can() -> None:
    """There is as much room elsewhere."""
    full = cluster(*racked(3, per_rack=3), held={"n1": 8, "n2": 8})
    behind = train("b", 1, nominated={0: "n0"})
    found = planned(
        full, gathered(train("z", 2, priority=5), EVICTS), gathered(behind), priority=-1
    )
    assert [set(each.places.values()) for each in found.values() if isinstance(each, Plan)] == [
        {"n1", "n2"},
        {"n0"},
    ]


def test_who_evicts_takes_room_that_weaker_ones_are_nominated_for_where_there_is_no_other() -> None:
    """And no room of those that are as strong."""
    full = cluster(*racked(2, per_rack=2), held={"n1": 8})
    waits = gathered(train("a", 2, priority=5, age_s=9.0), EVICTS)
    weaker = gathered(train("b", 1, priority=4, nominated={0: "n0"}))
    found = planned(full, waits, weaker, priority=-1)
    assert (type(found["a"]), type(found["b"])) == (Plan, Shortfall)
    as_strong = gathered(train("b", 1, priority=5, nominated={0: "n0"}))
    found = planned(full, waits, as_strong, priority=-1)
    assert (type(found["a"]), type(found["b"])) == (Shortfall, Plan)


def test_the_cluster_is_emptied_once_for_each_priority() -> None:
    """However many gangs wait to evict."""
    full, asked = cluster(*racked(1, per_rack=2), held={"n0": 8}), []

    def rest(below: int) -> Rest:
        asked.append(below)
        return without(full, {"n0": 9})(below)

    waiting = [gathered(train(name, 1, priority=5), EVICTS) for name in "abc"]
    outcomes(scene(full), full.site, waiting, {}, rest)
    assert asked == [5]


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


waiting = st.tuples(st.integers(1, 3), st.integers(0, 4), st.booleans())


@given(st.dictionaries(names, st.just(8)), st.lists(waiting, max_size=4))
def test_no_two_gangs_are_given_one_node_whoever_evicts(
    held: dict[str, int], gangs: list[tuple[int, int, bool]]
) -> None:
    """Law: plans never overlap."""
    waits = [
        gathered(train(f"g{at}", count, priority=priority), EVICTS if evicts else OnShortfall.WAIT)
        for at, (count, priority, evicts) in enumerate(gangs)
    ]
    found = planned(cluster(*racked(3, per_rack=3), held=held), *waits, priority=2)
    given_out = [
        node for each in found.values() if isinstance(each, Plan) for node in each.places.values()
    ]
    assert len(given_out) == len(set(given_out))
    assert len(found) == len(gangs)


@given(st.dictionaries(names, st.just(8)), st.lists(waiting, min_size=1, max_size=4))
def test_a_gang_changes_nothing_for_those_before_it_whoever_evicts(
    held: dict[str, int], gangs: list[tuple[int, int, bool]]
) -> None:
    """Law: without the last in the order, all others have the same outcome."""
    waits = {
        f"g{at}": gathered(
            train(f"g{at}", count, priority=priority), EVICTS if evicts else OnShortfall.WAIT
        )
        for at, (count, priority, evicts) in enumerate(gangs)
    }
    of = cluster(*racked(3, per_rack=3), held=held)
    found = planned(of, *waits.values(), priority=2)
    *before, last = found
    without_last = planned(of, *(waits[name] for name in before), priority=2)
    assert {name: type(each) for name, each in without_last.items()} == {
        name: type(found[name]) for name in before
    }
    assert last not in without_last
