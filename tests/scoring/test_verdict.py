"""Verdicts on machines that people know: what a gang gets, what a single pod gets, and why not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machines import a100_pcie_pairs, dgx_h100, pcie_l40s4
from strategies import fleet
from verdicts import GANG_4, GANG_8, SINGLE_1, cause_of, holding, rank_of, reason_of, sick

from scoring import rank
from scoring.candidate import candidate
from scoring.links import links_of
from scoring.model import (
    Allocation,
    AllocationMode,
    Fabric,
    GpuUuid,
    Health,
    Need,
    PodUid,
    ResourceKind,
    Scope,
    WorkClass,
)
from scoring.policy import (
    DEFAULT,
    GangPolicy,
    Policy,
    SinglePolicy,
)
from scoring.reasons import Reason
from scoring.rings import islands, positions

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
        node = sick(dgx_h100(), 3, cause_of(state))
        assert reason_of(node, GANG_8) == GANG_REFUSES.get(state)

    @pytest.mark.parametrize("state", list(Health))
    def test_a_single_pod_takes_what_still_works(self, state: Health) -> None:
        """SUSPECT, DEGRADED, UNKNOWN and UNMONITORED will do; NEW, PROBATION and worse will not."""
        reason = reason_of(sick(dgx_h100(), 3, cause_of(state)), SINGLE_1)
        assert (reason is not None) == (state in SINGLE_REFUSES)

    def test_a_single_pod_that_can_be_preempted_takes_probation(self) -> None:
        """PROBATION is for work that may be stopped."""
        node = sick(dgx_h100(), 0, cause_of(Health.PROBATION))
        assert reason_of(node, replace(SINGLE_1, preemptible=True)) is None
        assert reason_of(node, SINGLE_1) is Reason.GPU_PROBATION

    def test_every_open_cause_must_be_allowed_not_only_the_worst(self) -> None:
        """A policy that allows DEGRADED does not thereby allow the milder NEW beneath it."""
        node = sick(dgx_h100(), 0, cause_of(Health.DEGRADED), cause_of(Health.NEW))
        assert reason_of(node, SINGLE_1) is Reason.GPU_NEW

    def test_a_site_may_let_gangs_use_suspect_gpus(self) -> None:
        """Policy `gang.suspect`, or the pod's own word, admits SUSPECT."""
        node = sick(dgx_h100(), 0, cause_of(Health.SUSPECT))
        assert reason_of(node, GANG_8, policy=Policy(gang=GangPolicy(suspect=True))) is None
        assert reason_of(node, replace(GANG_8, allow=frozenset({Health.SUSPECT}))) is None

    def test_no_word_of_a_pod_admits_a_gpu_that_does_not_work(self) -> None:
        """`allow` goes as far as states in which work can run."""
        for state in (Health.RESET_REQUIRED, Health.REBOOT_REQUIRED, Health.FAILED):
            node = sick(dgx_h100(), 0, cause_of(state))
            assert reason_of(node, replace(GANG_8, allow=frozenset({state}))) is not None

    def test_a_single_pod_may_refuse_what_the_policy_accepts(self) -> None:
        """Annotation `deny: DEGRADED`, or a site's policy, keeps single pods off too."""
        node = sick(dgx_h100(), 0, cause_of(Health.DEGRADED))
        assert (
            reason_of(node, replace(SINGLE_1, deny=frozenset({Health.DEGRADED})))
            is Reason.GPU_DEGRADED
        )
        strict = Policy(single=SinglePolicy(degraded=False))
        assert reason_of(node, SINGLE_1, policy=strict) is Reason.GPU_DEGRADED


class TestInvariant10:
    """Judge the sets that the kubelet may hand out, not the set we would like."""

    def test_invariant_10_one_bad_free_gpu_spoils_a_part_ask_in_mode_unknown(self) -> None:
        """The kubelet may hand out any subset, so four of eight may hold the bad one."""
        node = sick(dgx_h100(), 7, cause_of(Health.DEGRADED))
        assert reason_of(node, GANG_4) is Reason.GPU_DEGRADED

    def test_invariant_10_a_bad_gpu_that_somebody_holds_is_no_danger(self) -> None:
        """What is not free is not handed out."""
        node = sick(dgx_h100(), 7, cause_of(Health.DEGRADED))
        assert reason_of(node, GANG_4, held=holding(node, 7)) is None

    def test_invariant_10_a_planned_node_gives_the_healthy_ones(self) -> None:
        """A cooperating plugin honours our choice, so the bad one stays free."""
        node = replace(sick(dgx_h100(), 7, cause_of(Health.DEGRADED)), mode=AllocationMode.PLANNED)
        assert reason_of(node, GANG_4) is None
        assert reason_of(node, GANG_8) is Reason.GPU_DEGRADED

    def test_invariant_10_a_planned_node_ranks_by_its_best_set_and_an_unknown_by_its_worst(
        self,
    ) -> None:
        """On PCIe pairs across sockets, the choice is between PIX and SYS."""
        pair = Need(work=WorkClass.GANG, count=2)
        unknown = pcie_l40s4()
        planned = replace(unknown, mode=AllocationMode.PLANNED)
        assert rank_of(planned, pair) > rank_of(unknown, pair)

    def test_invariant_10_counts_without_names_are_the_worst_case(self) -> None:
        """Where only the number of held GPUs is known, a bad one may still be free."""
        node = sick(dgx_h100(), 7, cause_of(Health.DEGRADED))
        assert reason_of(node, GANG_4, held=holding(node, 0, named=False)) is Reason.GPU_DEGRADED


class TestStockPlugin:
    """Mode `nvidia`: the sets that the best-effort policy may hand out, and no others."""

    def test_a_bad_gpu_that_the_plugin_would_not_pick_is_no_danger(self) -> None:
        """Of a whole NVLink pair and a lone bad card, a pair is asked: the pair comes."""
        node = replace(a100_pcie_pairs(), mode=AllocationMode.NVIDIA)
        pairs = [island for island in islands(node.links) if island.bit_count() == 2]
        lone, _ = positions(pairs[1])
        worse = sick(node, lone, cause_of(Health.DEGRADED))
        held = tuple(
            one
            for position in range(len(node.gpus))
            if position not in (*positions(pairs[0]), lone)
            for one in holding(node, position)
        )
        pair = Need(work=WorkClass.GANG, count=2)
        assert reason_of(worse, pair, held=held) is None
        assert reason_of(replace(worse, mode=AllocationMode.UNKNOWN), pair, held=held) is not None

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
        assert reason_of(node, three) is Reason.PLUGIN_MAY_FAIL
        assert reason_of(node, replace(three, count=2)) is None

    def test_a_whole_node_ask_gets_all_of_it(self) -> None:
        """One bad GPU spoils it, whatever the policy."""
        node = replace(dgx_h100(), mode=AllocationMode.NVIDIA)
        assert reason_of(node, GANG_8) is None
        assert reason_of(sick(node, 3, cause_of(Health.DEGRADED)), GANG_8) is Reason.GPU_DEGRADED

    def test_the_rank_is_that_of_the_worst_set_that_may_come(self) -> None:
        """The plugin prefers bridged pairs, so a pair ranks above what any two cards would."""
        node = a100_pcie_pairs()
        pair = Need(work=WorkClass.GANG, count=2)
        assert rank_of(replace(node, mode=AllocationMode.NVIDIA), pair) > rank_of(
            replace(node, mode=AllocationMode.UNKNOWN), pair
        )


class TestInvariant5:
    """kube-scheduler owns counts, Surefoot owns fitness."""

    def test_invariant_5_a_full_node_that_is_offered_passes_if_all_of_it_is_healthy(self) -> None:
        """Our view may lag, and preemption asks about nodes whose victims are imagined gone."""
        node = dgx_h100()
        assert reason_of(node, GANG_8, held=holding(node, *range(8))) is None

    def test_invariant_5_the_worst_set_over_free_and_held_is_judged(self) -> None:
        """A whole-node ask on a full node with one bad GPU would get it."""
        node = sick(dgx_h100(), 5, cause_of(Health.DEGRADED))
        assert reason_of(node, GANG_8, held=holding(node, *range(8))) is Reason.GPU_DEGRADED

    def test_invariant_5_a_gpu_that_the_view_lacks_is_unknown_not_absent(self) -> None:
        """Asked for more than we know of, a gang is refused and a single pod comes last."""
        node = dgx_h100()
        small = replace(
            node,
            gpus=node.gpus[:7],
            links=type(node.links)(node.links.words[:7], node.links.gbps[:7]),
        )
        assert reason_of(small, GANG_8) is Reason.FEWER_GPUS
        single = Need(work=WorkClass.SINGLE, count=8)
        assert reason_of(small, single) is None


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
        node = replace(sick(dgx_h100(), 7, cause_of(Health.DEGRADED)), mode=AllocationMode.PLANNED)
        held = holding(node, 0, 1, 2, 3)
        assert reason_of(node, GANG_4, held=held) is Reason.HEALTHY_GPUS_HELD
        assert reason_of(node, GANG_4, held=held, gone=("pod-0",)) is None

    def test_invariant_6_victims_that_free_bad_gpus_do_not_help(self) -> None:
        """With the holder of the bad GPU gone, the set may hold it."""
        node = sick(dgx_h100(), 0, cause_of(Health.RESET_REQUIRED))
        held = holding(node, *range(8))
        gone = tuple(f"pod-{position}" for position in range(4))
        assert reason_of(node, GANG_4, held=held, gone=gone) is Reason.RESET_REQUIRED
        better = tuple(f"pod-{position}" for position in range(4, 8))
        assert reason_of(node, GANG_4, held=held, gone=better) is None


class TestLinksAndFabric:
    """Links and fabric matter to those who talk over them."""

    def test_a_lost_nvlink_refuses_gangs_and_leaves_single_gpu_pods_alone(self) -> None:
        """One GPU alone needs no peer."""
        node = sick(dgx_h100(), 2, cause_of(Health.DEGRADED, Scope.LINK, "nvlink.down"))
        assert reason_of(node, GANG_8) is Reason.LINKS_IMPAIRED
        assert reason_of(node, replace(SINGLE_1, deny=frozenset({Health.DEGRADED}))) is None

    def test_a_fabric_that_is_not_up_refuses_gangs(self) -> None:
        """Active links are not usable links (NVSentinel #883)."""
        node = replace(dgx_h100(), fabric=Fabric(state="in_progress"))
        assert reason_of(node, GANG_8) is Reason.LINKS_IMPAIRED
        assert reason_of(node, SINGLE_1) is None

    def test_a_cause_of_the_node_concerns_each_of_its_gpus(self) -> None:
        """A parent's fault covers its children."""
        node = replace(
            dgx_h100(), causes=(cause_of(Health.RESET_REQUIRED, Scope.NODE, "sxid.20034"),)
        )
        assert reason_of(node, SINGLE_1) is Reason.RESET_REQUIRED


class TestLostGpus:
    """A GPU that fell off the bus takes the stock plugin with it."""

    @pytest.mark.parametrize("name", ["xid.79", "gpu.lost"])
    def test_a_lost_gpu_blocks_every_gpu_pod_of_the_node(self, name: str) -> None:
        """Seven healthy GPUs are worth nothing while every admission fails (plugin #2038)."""
        node = sick(dgx_h100(), 6, cause_of(Health.REBOOT_REQUIRED, name=name))
        for need in (GANG_8, SINGLE_1, replace(SINGLE_1, kind=ResourceKind.MIG)):
            assert reason_of(node, need, held=holding(node, 6)) is Reason.GPU_LOST

    def test_dra_does_not_fall_with_the_stock_plugin(self) -> None:
        """Where the scheduler allocates devices, only the lost one is out."""
        node = replace(
            sick(dgx_h100(), 6, cause_of(Health.REBOOT_REQUIRED, name="xid.79")),
            mode=AllocationMode.DRA,
        )
        assert reason_of(node, SINGLE_1, held=holding(node, 6)) is None

    def test_fewer_gpus_than_the_product_has_make_the_rest_suspect(self) -> None:
        """Gangs stay away, single pods may come (NVIDIA/aicr #1858)."""
        node = replace(dgx_h100(), expected=9)
        assert reason_of(node, GANG_8) is Reason.GPU_SUSPECT
        assert reason_of(node, SINGLE_1) is None


class TestOtherKinds:
    """MIG devices and shares are judged on health alone."""

    @pytest.mark.parametrize("kind", [ResourceKind.MIG, ResourceKind.SHARED])
    def test_a_part_of_a_gpu_may_be_on_any(self, kind: ResourceKind) -> None:
        """One bad GPU refuses it wherever it may be, held or not."""
        node = sick(dgx_h100(), 0, cause_of(Health.FAILED))
        need = Need(work=WorkClass.SINGLE, count=3, kind=kind, resource="nvidia.com/x")
        assert reason_of(node, need, held=holding(node, 0)) is Reason.GPU_FAILED
        assert reason_of(dgx_h100(), need) is None

    def test_mig_devices_come_from_split_gpus_and_whole_ones_do_not(self) -> None:
        """A node may have both kinds."""
        node = dgx_h100()
        split = replace(node.gpus[0], mig=True, causes=(cause_of(Health.FAILED),))
        mixed = replace(node, gpus=(split, *node.gpus[1:]))
        mig = Need(
            work=WorkClass.SINGLE, count=1, kind=ResourceKind.MIG, resource="nvidia.com/mig-1g.5gb"
        )
        assert reason_of(mixed, mig) is Reason.GPU_FAILED
        assert reason_of(mixed, SINGLE_1) is None

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
        node = sick(dgx_h100(), 0, cause_of(Health.FAILED))
        none = Need(work=WorkClass.SINGLE, count=0, kind=ResourceKind.NONE, resource="")
        assert reason_of(node, none) is None


class TestRank:
    """Who comes first."""

    def test_degraded_comes_after_suspect_after_healthy(self) -> None:
        """Single pods take the worse GPUs last."""
        ranks = [
            rank_of(sick(dgx_h100(), 0, cause_of(state)), SINGLE_1)
            for state in (Health.HEALTHY, Health.SUSPECT, Health.DEGRADED, Health.UNKNOWN)
        ]
        assert ranks == sorted(ranks, reverse=True)
        assert len(set(ranks)) == 4

    def test_a_gang_prefers_nvlink_over_pcie(self) -> None:
        """The slowest link of the set counts."""
        assert rank_of(dgx_h100(), GANG_4) > rank_of(pcie_l40s4(), GANG_4)

    def test_a_small_ask_prefers_the_node_that_it_fills(self) -> None:
        """Whole nodes are kept whole."""
        node = dgx_h100()
        broken = holding(node, *range(7))
        assert rank_of(node, SINGLE_1, broken) > rank_of(node, SINGLE_1)

    def test_points_round_half_up(self) -> None:
        """floor(10 rank + 0.5)."""
        assert [rank.points(value) for value in (0.0, 0.049, 0.05, 0.95, 1.0)] == [0, 0, 1, 10, 10]

    def test_only_a_gpu_by_name_can_be_gone(self) -> None:
        """An allocation of a GPU that the node does not have changes nothing."""
        node = dgx_h100()
        odd = replace(holding(node, 0)[0], gpus=frozenset({GpuUuid("GPU-elsewhere")}))
        ready = candidate(replace(fleet(node), allocations={node.name: (odd,)}), node, DEFAULT)
        assert ready.free == 0xFF


def test_names_of_too_few_gpus_leave_the_rest_nameless() -> None:
    """Three are held and one is named: two more are held, nobody knows which."""
    node = dgx_h100()
    partly = replace(holding(node, 0)[0], count=3)
    ready = candidate(replace(fleet(node), allocations={node.name: (partly,)}), node, DEFAULT)
    assert (ready.held, ready.nameless) == (1, 2)


def test_mig_devices_do_not_mind_links() -> None:
    """They have no peer-to-peer, so a cause of links is none of theirs."""
    node = sick(dgx_h100(), 0, cause_of(Health.FAILED, Scope.LINK, "nvlink.down"))
    two = Need(
        work=WorkClass.GANG, count=2, kind=ResourceKind.MIG, resource="nvidia.com/mig-1g.5gb"
    )
    assert reason_of(node, two) is None


def test_invariant_6_a_planned_node_that_lags_may_be_cured_by_freeing() -> None:
    """One bad GPU free, the good ones held: a plan would take those once they are free."""
    node = replace(sick(dgx_h100(), 0, cause_of(Health.DEGRADED)), mode=AllocationMode.PLANNED)
    held = holding(node, *range(1, 8))
    assert reason_of(node, GANG_4, held=held) is Reason.HEALTHY_GPUS_HELD
