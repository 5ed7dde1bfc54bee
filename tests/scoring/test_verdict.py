"""Verdicts on machines that people know: what a gang gets, what a single pod gets, and why not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machines import a100_pcie_pairs, dgx_h100, pcie_l40s4
from strategies import NOW_S, fleet

from scoring import explain, picture, rank
from scoring.candidate import candidate
from scoring.links import links_of
from scoring.model import (
    Allocation,
    AllocationMode,
    Ask,
    Breaker,
    BreakerState,
    Cause,
    Fabric,
    Fleet,
    GpuUuid,
    Health,
    Need,
    Node,
    NodeName,
    Override,
    OverrideVerdict,
    PodUid,
    ResourceKind,
    Scope,
    WorkClass,
)
from scoring.policy import (
    DEFAULT,
    BreakerPolicy,
    GangPolicy,
    GangsUnderOpenBreaker,
    Policy,
    SinglePolicy,
)
from scoring.reasons import Reason
from scoring.rings import islands, positions
from scoring.verdict import judge

GANG_8 = Need(work=WorkClass.GANG, count=8)
GANG_4 = Need(work=WorkClass.GANG, count=4)
SINGLE_1 = Need(work=WorkClass.SINGLE, count=1)


def _cause(state: Health, scope: Scope = Scope.GPU, name: str = "made.up") -> Cause:
    return Cause(id=name, state=state, scope=scope)


def _sick(node: Node, position: int, *causes: Cause) -> Node:
    gpus = list(node.gpus)
    gpus[position] = replace(gpus[position], causes=causes)
    return replace(node, gpus=tuple(gpus))


def _hold(node: Node, *positions: int, named: bool = True) -> tuple[Allocation, ...]:
    return tuple(
        Allocation(
            node=node.name,
            uid=PodUid(f"pod-{position}"),
            namespace="default",
            pod=f"pod-{position}",
            resource="nvidia.com/gpu",
            count=1,
            gpus=frozenset({node.gpus[position].uuid}) if named else None,
        )
        for position in positions
    )


def _reason(
    node: Node,
    need: Need,
    *,
    held: tuple[Allocation, ...] = (),
    policy: Policy = DEFAULT,
    of: Fleet | None = None,
    gone: tuple[str, ...] = (),
) -> Reason | None:
    found = of or fleet(node)
    found = replace(found, allocations={node.name: held})
    return judge(candidate(found, node, policy, gone=gone), need, policy).reason


def _rank(node: Node, need: Need, held: tuple[Allocation, ...] = ()) -> float:
    found = replace(fleet(node), allocations={node.name: held})
    ready = candidate(found, node, DEFAULT)
    return rank.rank(rank.parts(ready, need, judge(ready, need, DEFAULT), DEFAULT), DEFAULT)


GANG_REFUSES = {
    Health.NEW: Reason.GPU_NEW,
    Health.SUSPECT: Reason.GPU_SUSPECT,
    Health.PROBATION: Reason.GPU_PROBATION,
    Health.UNMONITORED: Reason.GPU_UNMONITORED,
    Health.DEGRADED: Reason.GPU_DEGRADED,
    Health.UNKNOWN: Reason.GPU_UNKNOWN,
    Health.RESET_REQUIRED: Reason.RESET_REQUIRED,
    Health.REBOOT_REQUIRED: Reason.REBOOT_REQUIRED,
    Health.FAILED: Reason.GPU_FAILED,
}
SINGLE_REFUSES = {
    Health.NEW,
    Health.PROBATION,
    Health.RESET_REQUIRED,
    Health.REBOOT_REQUIRED,
    Health.FAILED,
}


class TestByState:
    """The policy by work class, state by state."""

    @pytest.mark.parametrize("state", list(Health))
    def test_a_gang_takes_only_healthy_gpus(self, state: Health) -> None:
        """Every other state is refused, each with its own reason."""
        node = _sick(dgx_h100(), 3, _cause(state))
        assert _reason(node, GANG_8) == GANG_REFUSES.get(state)

    @pytest.mark.parametrize("state", list(Health))
    def test_a_single_pod_takes_what_still_works(self, state: Health) -> None:
        """SUSPECT, DEGRADED, UNKNOWN and UNMONITORED will do; NEW, PROBATION and worse will not."""
        reason = _reason(_sick(dgx_h100(), 3, _cause(state)), SINGLE_1)
        assert (reason is not None) == (state in SINGLE_REFUSES)

    def test_a_single_pod_that_can_be_preempted_takes_probation(self) -> None:
        """PROBATION is for work that may be stopped."""
        node = _sick(dgx_h100(), 0, _cause(Health.PROBATION))
        assert _reason(node, replace(SINGLE_1, preemptible=True)) is None
        assert _reason(node, SINGLE_1) is Reason.GPU_PROBATION

    def test_every_open_cause_must_be_allowed_not_only_the_worst(self) -> None:
        """A policy that allows DEGRADED does not thereby allow the milder NEW beneath it."""
        node = _sick(dgx_h100(), 0, _cause(Health.DEGRADED), _cause(Health.NEW))
        assert _reason(node, SINGLE_1) is Reason.GPU_NEW

    def test_a_site_may_let_gangs_use_suspect_gpus(self) -> None:
        """Policy `gang.suspect`, or the pod's own word, admits SUSPECT."""
        node = _sick(dgx_h100(), 0, _cause(Health.SUSPECT))
        assert _reason(node, GANG_8, policy=Policy(gang=GangPolicy(suspect=True))) is None
        assert _reason(node, replace(GANG_8, allow=frozenset({Health.SUSPECT}))) is None

    def test_no_word_of_a_pod_admits_a_gpu_that_does_not_work(self) -> None:
        """`allow` goes as far as states in which work can run."""
        for state in (Health.RESET_REQUIRED, Health.REBOOT_REQUIRED, Health.FAILED):
            node = _sick(dgx_h100(), 0, _cause(state))
            assert _reason(node, replace(GANG_8, allow=frozenset({state}))) is not None

    def test_a_single_pod_may_refuse_what_the_policy_accepts(self) -> None:
        """Annotation `deny: DEGRADED`, or a site's policy, keeps single pods off too."""
        node = _sick(dgx_h100(), 0, _cause(Health.DEGRADED))
        assert (
            _reason(node, replace(SINGLE_1, deny=frozenset({Health.DEGRADED})))
            is Reason.GPU_DEGRADED
        )
        strict = Policy(single=SinglePolicy(degraded=False))
        assert _reason(node, SINGLE_1, policy=strict) is Reason.GPU_DEGRADED


class TestInvariant10:
    """Judge the sets that the kubelet may hand out, not the set we would like."""

    def test_invariant_10_one_bad_free_gpu_spoils_a_part_ask_in_mode_unknown(self) -> None:
        """The kubelet may hand out any subset, so four of eight may hold the bad one."""
        node = _sick(dgx_h100(), 7, _cause(Health.DEGRADED))
        assert _reason(node, GANG_4) is Reason.GPU_DEGRADED

    def test_invariant_10_a_bad_gpu_that_somebody_holds_is_no_danger(self) -> None:
        """What is not free is not handed out."""
        node = _sick(dgx_h100(), 7, _cause(Health.DEGRADED))
        assert _reason(node, GANG_4, held=_hold(node, 7)) is None

    def test_invariant_10_a_planned_node_gives_the_healthy_ones(self) -> None:
        """A cooperating plugin honours our choice, so the bad one stays free."""
        node = replace(_sick(dgx_h100(), 7, _cause(Health.DEGRADED)), mode=AllocationMode.PLANNED)
        assert _reason(node, GANG_4) is None
        assert _reason(node, GANG_8) is Reason.GPU_DEGRADED

    def test_invariant_10_a_planned_node_ranks_by_its_best_set_and_an_unknown_by_its_worst(
        self,
    ) -> None:
        """On PCIe pairs across sockets, the choice is between PIX and SYS."""
        pair = Need(work=WorkClass.GANG, count=2)
        unknown = pcie_l40s4()
        planned = replace(unknown, mode=AllocationMode.PLANNED)
        assert _rank(planned, pair) > _rank(unknown, pair)

    def test_invariant_10_counts_without_names_are_the_worst_case(self) -> None:
        """Where only the number of held GPUs is known, a bad one may still be free."""
        node = _sick(dgx_h100(), 7, _cause(Health.DEGRADED))
        assert _reason(node, GANG_4, held=_hold(node, 0, named=False)) is Reason.GPU_DEGRADED


class TestStockPlugin:
    """Mode `nvidia`: the sets that the best-effort policy may hand out, and no others."""

    def test_a_bad_gpu_that_the_plugin_would_not_pick_is_no_danger(self) -> None:
        """Of a whole NVLink pair and a lone bad card, a pair is asked: the pair comes."""
        node = replace(a100_pcie_pairs(), mode=AllocationMode.NVIDIA)
        pairs = [island for island in islands(node.links) if island.bit_count() == 2]
        lone, _ = positions(pairs[1])
        sick = _sick(node, lone, _cause(Health.DEGRADED))
        held = tuple(
            one
            for position in range(len(node.gpus))
            if position not in (*positions(pairs[0]), lone)
            for one in _hold(node, position)
        )
        pair = Need(work=WorkClass.GANG, count=2)
        assert _reason(sick, pair, held=held) is None
        assert _reason(replace(sick, mode=AllocationMode.UNKNOWN), pair, held=held) is not None

    def test_a_set_with_a_device_that_is_none_is_a_veto(self) -> None:
        """Five free cards with one NVLink pair, three asked: the plugin may fail the pod."""
        node = replace(
            dgx_h100(),
            gpus=dgx_h100().gpus[:5],
            links=links_of(range(5), {(2, 3): "NV12"}),
            mode=AllocationMode.NVIDIA,
            fabric=None,
            expected=None,
        )
        three = Need(work=WorkClass.SINGLE, count=3)
        assert _reason(node, three) is Reason.PLUGIN_MAY_FAIL
        assert _reason(node, replace(three, count=2)) is None

    def test_a_whole_node_ask_gets_all_of_it(self) -> None:
        """One bad GPU spoils it, whatever the policy."""
        node = replace(dgx_h100(), mode=AllocationMode.NVIDIA)
        assert _reason(node, GANG_8) is None
        assert _reason(_sick(node, 3, _cause(Health.DEGRADED)), GANG_8) is Reason.GPU_DEGRADED

    def test_the_rank_is_that_of_the_worst_set_that_may_come(self) -> None:
        """The plugin prefers bridged pairs, so a pair ranks above what any two cards would."""
        node = a100_pcie_pairs()
        pair = Need(work=WorkClass.GANG, count=2)
        assert _rank(replace(node, mode=AllocationMode.NVIDIA), pair) > _rank(
            replace(node, mode=AllocationMode.UNKNOWN), pair
        )


class TestInvariant5:
    """kube-scheduler owns counts, Surefoot owns fitness."""

    def test_invariant_5_a_full_node_that_is_offered_passes_if_all_of_it_is_healthy(self) -> None:
        """Our view may lag, and preemption asks about nodes whose victims are imagined gone."""
        node = dgx_h100()
        assert _reason(node, GANG_8, held=_hold(node, *range(8))) is None

    def test_invariant_5_the_worst_set_over_free_and_held_is_judged(self) -> None:
        """A whole-node ask on a full node with one bad GPU would get it."""
        node = _sick(dgx_h100(), 5, _cause(Health.DEGRADED))
        assert _reason(node, GANG_8, held=_hold(node, *range(8))) is Reason.GPU_DEGRADED

    def test_invariant_5_a_gpu_that_the_view_lacks_is_unknown_not_absent(self) -> None:
        """Asked for more than we know of, a gang is refused and a single pod comes last."""
        node = dgx_h100()
        small = replace(
            node,
            gpus=node.gpus[:7],
            links=type(node.links)(node.links.words[:7], node.links.gbps[:7]),
        )
        assert _reason(small, GANG_8) is Reason.FEWER_GPUS
        single = Need(work=WorkClass.SINGLE, count=8)
        assert _reason(small, single) is None


class TestInvariant6:
    """No running pod is evicted in vain."""

    def test_invariant_6_every_health_veto_is_unresolvable(self) -> None:
        """Only what freeing held GPUs would cure may invite preemption."""
        assert [reason for reason in Reason if not reason.unresolvable] == [
            Reason.HEALTHY_GPUS_HELD,
            Reason.PLUGIN_MAY_FAIL,
        ]

    def test_invariant_6_healthy_gpus_that_are_held_may_be_freed(self) -> None:
        """A planned node with enough healthy GPUs in other hands is worth a preemption."""
        node = replace(_sick(dgx_h100(), 7, _cause(Health.DEGRADED)), mode=AllocationMode.PLANNED)
        held = _hold(node, 0, 1, 2, 3)
        assert _reason(node, GANG_4, held=held) is Reason.HEALTHY_GPUS_HELD
        assert _reason(node, GANG_4, held=held, gone=("pod-0",)) is None

    def test_invariant_6_victims_that_free_bad_gpus_do_not_help(self) -> None:
        """With the holder of the bad GPU gone, the set may hold it."""
        node = _sick(dgx_h100(), 0, _cause(Health.RESET_REQUIRED))
        held = _hold(node, *range(8))
        gone = tuple(f"pod-{position}" for position in range(4))
        assert _reason(node, GANG_4, held=held, gone=gone) is Reason.RESET_REQUIRED
        better = tuple(f"pod-{position}" for position in range(4, 8))
        assert _reason(node, GANG_4, held=held, gone=better) is None


class TestLinksAndFabric:
    """Links and fabric matter to those who talk over them."""

    def test_a_lost_nvlink_refuses_gangs_and_leaves_single_gpu_pods_alone(self) -> None:
        """One GPU alone needs no peer."""
        node = _sick(dgx_h100(), 2, _cause(Health.DEGRADED, Scope.LINK, "nvlink.down"))
        assert _reason(node, GANG_8) is Reason.LINKS_IMPAIRED
        assert _reason(node, replace(SINGLE_1, deny=frozenset({Health.DEGRADED}))) is None

    def test_a_fabric_that_is_not_up_refuses_gangs(self) -> None:
        """Active links are not usable links (NVSentinel #883)."""
        node = replace(dgx_h100(), fabric=Fabric(state="in_progress"))
        assert _reason(node, GANG_8) is Reason.LINKS_IMPAIRED
        assert _reason(node, SINGLE_1) is None

    def test_a_cause_of_the_node_concerns_each_of_its_gpus(self) -> None:
        """A parent's fault covers its children."""
        node = replace(
            dgx_h100(), causes=(_cause(Health.RESET_REQUIRED, Scope.NODE, "sxid.20034"),)
        )
        assert _reason(node, SINGLE_1) is Reason.RESET_REQUIRED


class TestLostGpus:
    """A GPU that fell off the bus takes the stock plugin with it."""

    @pytest.mark.parametrize("name", ["xid.79", "gpu.lost"])
    def test_a_lost_gpu_blocks_every_gpu_pod_of_the_node(self, name: str) -> None:
        """Seven healthy GPUs are worth nothing while every admission fails (plugin #2038)."""
        node = _sick(dgx_h100(), 6, _cause(Health.REBOOT_REQUIRED, name=name))
        for need in (GANG_8, SINGLE_1, replace(SINGLE_1, kind=ResourceKind.MIG)):
            assert _reason(node, need, held=_hold(node, 6)) is Reason.GPU_LOST

    def test_dra_does_not_fall_with_the_stock_plugin(self) -> None:
        """Where the scheduler allocates devices, only the lost one is out."""
        node = replace(
            _sick(dgx_h100(), 6, _cause(Health.REBOOT_REQUIRED, name="xid.79")),
            mode=AllocationMode.DRA,
        )
        assert _reason(node, SINGLE_1, held=_hold(node, 6)) is None

    def test_fewer_gpus_than_the_product_has_make_the_rest_suspect(self) -> None:
        """Gangs stay away, single pods may come (NVIDIA/aicr #1858)."""
        node = replace(dgx_h100(), expected=9)
        assert _reason(node, GANG_8) is Reason.GPU_SUSPECT
        assert _reason(node, SINGLE_1) is None


class TestOverrides:
    """An operator's word beats telemetry until it runs out."""

    def _with(self, node: Node, *words: Override) -> Fleet:
        return replace(fleet(node), overrides={word.target: word for word in words})

    def _word(
        self, target: str, verdict: OverrideVerdict, until_s: float | None = None
    ) -> Override:
        return Override(target=target, verdict=verdict, who="ada", why="test", until_s=until_s)

    def test_deny_refuses_a_healthy_gpu_and_a_healthy_node(self) -> None:
        """Both targets, every work class."""
        node = dgx_h100()
        for target in (f"gpu/{node.gpus[0].uuid}", f"node/{node.name}"):
            found = self._with(node, self._word(target, OverrideVerdict.DENY))
            assert _reason(node, SINGLE_1, of=found) is Reason.OVERRIDE_DENIED

    def test_allow_admits_whatever_telemetry_says(self) -> None:
        """Even a lost GPU on a silent node."""
        node = _sick(
            dgx_h100(), 0, _cause(Health.FAILED), _cause(Health.REBOOT_REQUIRED, name="xid.79")
        )
        found = replace(
            self._with(node, self._word(f"node/{node.name}", OverrideVerdict.ALLOW)), seen_s={}
        )
        assert _reason(node, GANG_8, of=found) is None

    def test_a_word_on_a_gpu_beats_one_on_its_node(self) -> None:
        """The nearer word counts."""
        node = dgx_h100()
        found = self._with(
            node,
            self._word(f"node/{node.name}", OverrideVerdict.ALLOW),
            self._word(f"gpu/{node.gpus[0].uuid}", OverrideVerdict.DENY),
        )
        assert _reason(node, GANG_8, of=found) is Reason.OVERRIDE_DENIED

    def test_a_word_that_ran_out_is_silent(self) -> None:
        """`until` is honoured to the second, and the candidate says when it changes."""
        node = dgx_h100()
        word = self._word(f"node/{node.name}", OverrideVerdict.DENY, until_s=NOW_S + 5)
        found = self._with(node, word)
        ready = candidate(found, node, DEFAULT)
        assert judge(ready, SINGLE_1, DEFAULT).reason is Reason.OVERRIDE_DENIED
        assert ready.changes_at_s == NOW_S + 5
        later = replace(found, now_s=NOW_S + 5)
        assert judge(candidate(later, node, DEFAULT), SINGLE_1, DEFAULT).reason is None


class TestStaleness:
    """Invariant 2: no data is not health."""

    def _aged(self, node: Node, age_s: float | None) -> Fleet:
        return fleet(node, seen_s={} if age_s is None else {node.name: NOW_S - age_s})

    @pytest.mark.parametrize(
        ("age_s", "gang", "single_fits"),
        [
            (59.0, None, True),
            (60.0, Reason.NODE_STALE, True),
            (599.0, Reason.NODE_STALE, True),
            (600.0, Reason.NODE_SILENT, True),
            (None, Reason.NODE_SILENT, True),
        ],
    )
    def test_invariant_2_an_old_sample_takes_no_gang(
        self, age_s: float | None, gang: Reason | None, single_fits: bool
    ) -> None:
        """Stale from 60 s, UNKNOWN from 10 minutes; single pods may come, last."""
        node = dgx_h100()
        assert _reason(node, GANG_8, of=self._aged(node, age_s)) is gang
        assert (_reason(node, SINGLE_1, of=self._aged(node, age_s)) is None) is single_fits

    def test_invariant_2_unknown_never_improves_a_worse_verdict(self) -> None:
        """FAILED, then silence, stays FAILED."""
        node = _sick(dgx_h100(), 0, _cause(Health.FAILED))
        assert _reason(node, SINGLE_1, of=self._aged(node, 5_000.0)) is Reason.GPU_FAILED

    def test_a_single_pod_that_denies_unknown_gets_no_stale_node(self) -> None:
        """`deny: UNKNOWN` covers what has no current data."""
        node = dgx_h100()
        wary = replace(SINGLE_1, deny=frozenset({Health.UNKNOWN}))
        assert _reason(node, wary, of=self._aged(node, 90.0)) is Reason.NODE_STALE


class TestBreakers:
    """A pool's breaker, as it stands in the cache."""

    def _pool(self, node: Node, state: BreakerState, until_s: float | None = None) -> Node:
        del state, until_s
        return replace(node, labels={DEFAULT.pool_label: "H100"})

    def _with(
        self, node: Node, state: BreakerState, until_s: float | None, age_s: float = 1.0
    ) -> Fleet:
        found = fleet(node, seen_s={node.name: NOW_S - age_s})
        return replace(found, breakers={"H100": Breaker(pool="H100", state=state, until_s=until_s)})

    def test_an_open_breaker_lets_single_pods_use_softly_excluded_gpus(self) -> None:
        """NEW and PROBATION are admitted, what does not work is not, and gangs never are."""
        node = replace(
            _sick(dgx_h100(), 0, _cause(Health.NEW)), labels={DEFAULT.pool_label: "H100"}
        )
        found = self._with(node, BreakerState.OPEN, None)
        assert _reason(node, SINGLE_1, of=found) is None
        assert _reason(node, GANG_8, of=found) is Reason.GPU_NEW
        dead = _sick(node, 0, _cause(Health.FAILED))
        assert (
            _reason(dead, SINGLE_1, of=self._with(dead, BreakerState.OPEN, None))
            is Reason.GPU_FAILED
        )

    def test_a_site_may_admit_gangs_under_an_open_breaker(self) -> None:
        """Policy `breaker.gangs: admit`."""
        node = replace(
            _sick(dgx_h100(), 0, _cause(Health.DEGRADED)), labels={DEFAULT.pool_label: "H100"}
        )
        admit = Policy(breaker=BreakerPolicy(gangs=GangsUnderOpenBreaker.ADMIT))
        assert (
            _reason(node, GANG_8, of=self._with(node, BreakerState.OPEN, None), policy=admit)
            is None
        )

    def test_a_frozen_pool_stays_fresh_until_the_freeze_ends(self) -> None:
        """A silence of the telemetry does not drain the pool, and then it counts."""
        node = replace(dgx_h100(), labels={DEFAULT.pool_label: "H100"})
        found = self._with(node, BreakerState.FROZEN, NOW_S + 300, age_s=320)
        assert _reason(node, GANG_8, of=found) is None
        ended = replace(found, now_s=NOW_S + 300)
        assert _reason(node, GANG_8, of=ended) is Reason.NODE_SILENT

    def test_a_freeze_does_not_revive_a_node_that_was_silent_before(self) -> None:
        """Only what was fresh when the freeze began is kept."""
        node = replace(dgx_h100(), labels={DEFAULT.pool_label: "H100"})
        found = self._with(node, BreakerState.FROZEN, NOW_S + 300, age_s=3_000)
        assert _reason(node, GANG_8, of=found) is Reason.NODE_SILENT


class TestOtherKinds:
    """MIG devices and shares are judged on health alone."""

    @pytest.mark.parametrize("kind", [ResourceKind.MIG, ResourceKind.SHARED])
    def test_a_part_of_a_gpu_may_be_on_any(self, kind: ResourceKind) -> None:
        """One bad GPU refuses it wherever it may be, held or not."""
        node = _sick(dgx_h100(), 0, _cause(Health.FAILED))
        need = Need(work=WorkClass.SINGLE, count=3, kind=kind, resource="nvidia.com/x")
        assert _reason(node, need, held=_hold(node, 0)) is Reason.GPU_FAILED
        assert _reason(dgx_h100(), need) is None

    def test_mig_devices_come_from_split_gpus_and_whole_ones_do_not(self) -> None:
        """A node may have both kinds."""
        node = dgx_h100()
        split = replace(node.gpus[0], mig=True, causes=(_cause(Health.FAILED),))
        mixed = replace(node, gpus=(split, *node.gpus[1:]))
        mig = Need(
            work=WorkClass.SINGLE, count=1, kind=ResourceKind.MIG, resource="nvidia.com/mig-1g.5gb"
        )
        assert _reason(mixed, mig) is Reason.GPU_FAILED
        assert _reason(mixed, SINGLE_1) is None

    def test_instances_and_shares_hold_no_whole_gpu(self) -> None:
        """They are counted by other resources."""
        node = dgx_h100()
        share = Allocation(
            node=node.name, uid=PodUid("u"), namespace="d", pod="p", resource="nvidia.com/gpu.shared", count=8,
        )  # fmt: skip
        ready = candidate(replace(fleet(node), allocations={node.name: (share,)}), node, DEFAULT)
        assert ready.free == 0xFF
        assert ready.nameless == 0

    def test_a_pod_without_gpus_fits_everywhere(self) -> None:
        """Nothing of ours concerns it."""
        node = _sick(dgx_h100(), 0, _cause(Health.FAILED))
        none = Need(work=WorkClass.SINGLE, count=0, kind=ResourceKind.NONE, resource="")
        assert _reason(node, none) is None


class TestRank:
    """Who comes first."""

    def test_degraded_comes_after_suspect_after_healthy(self) -> None:
        """Single pods take the worse GPUs last."""
        ranks = [
            _rank(_sick(dgx_h100(), 0, _cause(state)), SINGLE_1)
            for state in (Health.HEALTHY, Health.SUSPECT, Health.DEGRADED, Health.UNKNOWN)
        ]
        assert ranks == sorted(ranks, reverse=True)
        assert len(set(ranks)) == 4

    def test_a_gang_prefers_nvlink_over_pcie(self) -> None:
        """The slowest link of the set counts."""
        assert _rank(dgx_h100(), GANG_4) > _rank(pcie_l40s4(), GANG_4)

    def test_a_small_ask_prefers_the_node_that_it_fills(self) -> None:
        """Whole nodes are kept whole."""
        node = dgx_h100()
        broken = _hold(node, *range(7))
        assert _rank(node, SINGLE_1, broken) > _rank(node, SINGLE_1)

    def test_points_round_half_up(self) -> None:
        """floor(10 rank + 0.5)."""
        assert [rank.points(value) for value in (0.0, 0.049, 0.05, 0.95, 1.0)] == [0, 0, 1, 10, 10]

    def test_only_a_gpu_by_name_can_be_gone(self) -> None:
        """An allocation of a GPU that the node does not have changes nothing."""
        node = dgx_h100()
        odd = replace(_hold(node, 0)[0], gpus=frozenset({GpuUuid("GPU-elsewhere")}))
        ready = candidate(replace(fleet(node), allocations={node.name: (odd,)}), node, DEFAULT)
        assert ready.free == 0xFF


class TestUnreadable:
    """A document that cannot be read may say the worst."""

    def test_invariant_2_a_quarantined_node_takes_no_pod_at_all(self) -> None:
        """Not even where nodes without a document would pass: nobody knows what it says."""
        name = NodeName("broken")
        seen = picture.picture(
            replace(fleet(dgx_h100()), quarantined={f"Node/{name}": "gpus: missing"}), DEFAULT
        )
        for need in (GANG_8, SINGLE_1):
            assert picture.ranking_of(seen, need).vetoes[name] is Reason.NODE_UNREADABLE
        ask = Ask(namespace="d", name="p", uid=PodUid("u"), need=SINGLE_1)
        (told,) = explain.account(seen, ask, [name], None, 1).nodes
        assert told.reason is Reason.NODE_UNREADABLE
        assert told.evidence[0].value == "gpus: missing"

    def test_a_repaired_document_is_judged_again(self) -> None:
        """The next good document ends the quarantine."""
        node = dgx_h100(name="broken")
        broken = replace(fleet(), quarantined={"Node/broken": "junk"})
        old = picture.picture(broken, DEFAULT)
        new = picture.advanced(old, fleet(node), {node.name})
        assert picture.ranking_of(new, GANG_8).vetoes == {}


class TestWithoutGpus:
    """Nodes that show no GPU, or no document, of which something is known all the same."""

    def _seen(self, *words: Override, node: Node | None = None) -> picture.Picture:
        found = fleet(*((node,) if node else ()))
        return picture.picture(
            replace(found, overrides={word.target: word for word in words}), DEFAULT
        )

    def _word(self, verdict: OverrideVerdict, until_s: float | None = None) -> Override:
        return Override(target="node/bare", verdict=verdict, who="a", why="b", until_s=until_s)

    def test_a_denied_node_is_refused_even_without_a_document(self) -> None:
        """An operator's word needs no telemetry, and ends when it says."""
        seen = self._seen(self._word(OverrideVerdict.DENY, NOW_S + 5))
        bare = NodeName("bare")
        assert picture.ranking_of(seen, SINGLE_1).vetoes == {bare: Reason.OVERRIDE_DENIED}
        later = replace(seen.fleet, now_s=NOW_S + 6)
        assert picture.due(seen, later) == {bare}
        assert picture.advanced(seen, later, {bare}).candidates == {}

    def test_a_node_with_no_gpu_is_judged_by_its_own_causes(self) -> None:
        """A failed node that lists no GPU any more is no better for that."""
        bare = replace(
            dgx_h100(name="bare", node_causes=(_cause(Health.FAILED, Scope.NODE),)),
            gpus=(),
            links=links_of((), {}),
        )
        assert _reason(bare, SINGLE_1) is Reason.GPU_FAILED
        denied = self._seen(self._word(OverrideVerdict.DENY), node=replace(bare, causes=()))
        assert picture.ranking_of(denied, SINGLE_1).vetoes[bare.name] is Reason.OVERRIDE_DENIED
        assert _reason(replace(bare, causes=()), GANG_8) is Reason.FEWER_GPUS


def test_names_of_too_few_gpus_leave_the_rest_nameless() -> None:
    """Three are held and one is named: two more are held, nobody knows which."""
    node = dgx_h100()
    partly = replace(_hold(node, 0)[0], count=3)
    ready = candidate(replace(fleet(node), allocations={node.name: (partly,)}), node, DEFAULT)
    assert (ready.held, ready.nameless) == (1, 2)


def test_a_stamp_that_is_taken_back_is_noticed() -> None:
    """A node whose last sample turns out older, or is gone, is judged again at once."""
    nodes = [dgx_h100(name=name) for name in ("older", "gone", "same")]
    seen = picture.picture(fleet(*nodes), DEFAULT)
    stamps = {NodeName("older"): NOW_S - 300, NodeName("same"): NOW_S - 1}
    assert picture.due(seen, replace(seen.fleet, seen_s=stamps)) == {"older", "gone"}


def test_mig_devices_do_not_mind_links() -> None:
    """They have no peer-to-peer, so a cause of links is none of theirs."""
    node = _sick(dgx_h100(), 0, _cause(Health.FAILED, Scope.LINK, "nvlink.down"))
    two = Need(
        work=WorkClass.GANG, count=2, kind=ResourceKind.MIG, resource="nvidia.com/mig-1g.5gb"
    )
    assert _reason(node, two) is None


def test_invariant_6_a_planned_node_that_lags_may_be_cured_by_freeing() -> None:
    """One bad GPU free, the good ones held: a plan would take those once they are free."""
    node = replace(_sick(dgx_h100(), 0, _cause(Health.DEGRADED)), mode=AllocationMode.PLANNED)
    held = _hold(node, *range(1, 8))
    assert _reason(node, GANG_4, held=held) is Reason.HEALTHY_GPUS_HELD
