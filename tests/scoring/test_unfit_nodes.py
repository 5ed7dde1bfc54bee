"""Which nodes are unfit for every gang, and how many of them may carry the taint."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import dgx_h100
from pools import POOL, fleet_of, names, of_state, seen
from strategies import fleets
from verdicts import holding

from scoring import unfit
from scoring.candidate import quarantine
from scoring.model import (
    AllocationMode,
    Breaker,
    BreakerState,
    Cause,
    Fleet,
    Health,
    Need,
    NodeName,
    WorkClass,
)
from scoring.picture import Picture, picture
from scoring.policy import DEFAULT
from scoring.verdict import judge

N0 = NodeName("n0")
BAD = Health.RESET_REQUIRED


def is_unfit(fleet: Fleet) -> bool:
    """Whether the first node is."""
    return unfit.unfit(seen(fleet), N0)


class TestUnfit:
    """No member of any gang may go there."""

    def test_a_bad_gpu_that_may_come_makes_a_node_unfit(self) -> None:
        """Whatever the plugin hands out may be the bad one."""
        assert is_unfit(fleet_of(of_state("n0", BAD)))
        assert not is_unfit(fleet_of(of_state("n0")))

    def test_a_node_of_which_some_gangs_may_have_a_part_is_fit(self) -> None:
        """Where the choice is planned, seven good GPUs are left for a gang."""
        node = replace(of_state("n0", BAD), mode=AllocationMode.PLANNED)
        assert not is_unfit(fleet_of(node))
        held = dgx_h100(name="n0", mode=AllocationMode.NVIDIA, causes=_first_bad())
        assert is_unfit(fleet_of(held))
        busy = replace(fleet_of(held), allocations={N0: holding(held, 0)})
        assert not is_unfit(busy)

    def test_held_gpus_make_no_node_unfit(self) -> None:
        """Counts are kube-scheduler's, and change with every pod."""
        node = replace(of_state("n0", BAD), mode=AllocationMode.PLANNED)
        full = replace(fleet_of(node), allocations={N0: holding(node, *range(8))})
        assert not is_unfit(full)

    @pytest.mark.parametrize(("age_s", "found"), [(1.0, False), (90.0, False), (900.0, True)])
    def test_stale_telemetry_is_waited_for(self, age_s: float, found: bool) -> None:
        """It is back or silent soon; a silent node takes no gang."""
        assert is_unfit(fleet_of(of_state("n0"), ages_s={N0: age_s})) == found

    def test_a_node_without_a_document_is_not_judged(self) -> None:
        """None at all, or one that cannot be read: nobody knows."""
        assert not is_unfit(fleet_of())
        assert not is_unfit(replace(fleet_of(), quarantined={quarantine(N0): "broken"}))

    @given(fleet=fleets())
    def test_no_gang_may_use_an_unfit_node(self, fleet: Fleet) -> None:
        """However many GPUs its members ask for."""
        found = picture(fleet, DEFAULT)
        for name in found.names:
            if unfit.unfit(found, name):
                for count in range(1, len(fleet.nodes[name].gpus) + 1):
                    need = Need(work=WorkClass.GANG, count=count)
                    assert not judge(found.candidates[name], need, DEFAULT).fits


def _first_bad() -> dict[int, tuple[Cause, ...]]:
    return {0: of_state("n0", BAD).gpus[0].causes}


class TestMarks:
    """A share of each pool."""

    def test_a_share_of_the_pool_may_be_tainted(self) -> None:
        """Of ten nodes two, by name; the others are withheld."""
        found = unfit.marks(_pool(), names(4), ())
        assert found.tainted == set(names(2))
        assert found.withheld == {NodeName("n2"), NodeName("n3")}

    def test_one_node_always_may(self) -> None:
        """Of a pool of three, a fifth is less than one."""
        nodes = [of_state(name) for name in names(3)]
        assert unfit.marks(seen(fleet_of(*nodes)), names(2), ()).tainted == {N0}

    def test_taints_that_stand_keep_their_place(self) -> None:
        """Another node by the name of n0 does not push n3 out, and a share that shrinks takes none away."""
        assert unfit.marks(_pool(), names(4), {NodeName("n3")}).tainted == {N0, NodeName("n3")}
        assert unfit.marks(_pool(), names(4), names(4)).tainted == set(names(4))

    def test_a_node_that_is_fit_again_loses_it(self) -> None:
        """Only unfit ones carry it."""
        assert unfit.marks(_pool(), [N0], names(3)).tainted == {N0}

    @pytest.mark.parametrize("state", [BreakerState.OPEN, BreakerState.FROZEN])
    def test_no_taint_comes_while_the_breaker_is_not_closed(self, state: BreakerState) -> None:
        """What excludes too much is not trusted; what stands stays."""
        word = Breaker(pool=POOL, state=state, until_s=1e9)
        tripped = replace(_pool().fleet, breakers={POOL: word})
        found = unfit.marks(seen(tripped), names(2), {N0})
        assert found.tainted == {N0}
        assert found.withheld == {NodeName("n1")}

    @given(ill=st.sets(st.sampled_from(names(10))), tainted=st.sets(st.sampled_from(names(10))))
    def test_the_share_is_never_exceeded_by_a_new_taint(
        self, ill: set[NodeName], tainted: set[NodeName]
    ) -> None:
        """A taint comes only where fewer than the share stand, and each unfit node is told."""
        found = unfit.marks(_pool(), ill, tainted)
        assert len(found.tainted) <= max(2, len(ill & tainted))
        assert found.tainted | found.withheld == ill


def _pool() -> Picture:
    return seen(fleet_of(*[of_state(name) for name in names(10)]))
