"""Pods that get shares of GPUs, and nodes whose kubelet keeps to NUMA nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import dgx1v, dgx_h100
from verdicts import cause_of, holding, reason_of, sick

from scoring.model import (
    Allocation,
    AllocationMode,
    GpuUuid,
    Health,
    Need,
    Node,
    PodUid,
    ResourceKind,
    SharePolicy,
    Sharing,
    TopologyPolicy,
    WorkClass,
)
from scoring.reasons import Reason

SHARE = "nvidia.com/gpu.shared"


def shared(policy: SharePolicy = SharePolicy.DISTRIBUTED, *, bad: int = 0) -> Node:
    """Eight GPUs of four shares each, one of them failed."""
    return replace(
        sick(dgx_h100(), bad, cause_of(Health.DEGRADED)),
        sharing=Sharing(replicas=4, policy=policy),
    )


def wants(count: int) -> Need:
    """A pod that refuses degraded GPUs."""
    return Need(work=WorkClass.GANG, count=count, kind=ResourceKind.SHARED, resource=SHARE)


def taken(node: Node, *shares: int, named: bool = True) -> tuple[Allocation, ...]:
    """A pod for each GPU that holds so many of its shares."""
    return tuple(
        Allocation(
            node=node.name, uid=PodUid(f"pod-{i}"), namespace="d", pod=f"pod-{i}",
            resource=SHARE, count=count, gpus=frozenset({node.gpus[i].uuid}) if named else None,
        )
        for i, count in enumerate(shares)
        if count
    )  # fmt: skip


class TestShares:
    """A pod is judged by the GPUs that its shares may come from."""

    def test_a_busy_bad_gpu_is_out_of_reach_where_shares_are_distributed(self) -> None:
        """The plugin takes from the idle ones first."""
        node = shared()
        assert reason_of(node, wants(7), held=taken(node, 1)) is None
        assert reason_of(node, wants(8), held=taken(node, 1)) is Reason.GPU_DEGRADED

    def test_an_idle_bad_gpu_is_out_of_reach_where_shares_are_packed(self) -> None:
        """The plugin fills the one that is in use."""
        node = shared(SharePolicy.PACKED)
        used = taken(node, 0, 1)
        assert reason_of(node, wants(3), held=used) is None
        assert reason_of(node, wants(4), held=used) is Reason.GPU_DEGRADED

    @pytest.mark.parametrize("named", [True, False])
    def test_who_holds_which_must_be_known(self, named: bool) -> None:
        """A count without GPUs tells nothing: then any may come."""
        node = shared()
        used = taken(node, 1, named=named)
        assert reason_of(node, wants(1), held=used) is (None if named else Reason.GPU_DEGRADED)

    def test_a_gpu_that_the_cache_does_not_know_tells_nothing(self) -> None:
        """The view lags behind a replacement."""
        node = shared()
        (used,) = taken(node, 1)
        gone = replace(used, gpus=frozenset({GpuUuid("GPU-gone")}))
        assert reason_of(node, wants(1), held=(gone,)) is Reason.GPU_DEGRADED

    def test_fewer_free_shares_than_asked_is_the_schedulers_business(self) -> None:
        """Our view lags: every GPU counts."""
        node = shared()
        full = taken(node, *[4] * 8)
        assert reason_of(node, wants(1), held=full) is Reason.GPU_DEGRADED
        healthy = replace(dgx_h100(), sharing=Sharing(replicas=4))
        assert reason_of(healthy, wants(1), held=taken(healthy, *[4] * 8)) is None

    def test_beside_split_gpus_any_may_come(self) -> None:
        """A split GPU shares its instances, not itself: it looks idle and gives nothing."""
        node = shared(bad=1)
        split = replace(node.gpus[0], mig=True)
        mixed = replace(node, gpus=(split, *node.gpus[1:]))
        used = taken(mixed, 0, *[1] * 7)
        assert reason_of(mixed, wants(1), held=used) is Reason.GPU_DEGRADED

    def test_a_dead_gpu_may_be_withdrawn_or_not(self) -> None:
        """With it six idle ones give six shares, without it one comes from elsewhere: both count."""
        node = sick(shared(bad=1), 0, cause_of(Health.FAILED))
        used = taken(node, 3, 1)
        assert reason_of(node, wants(6), held=used) is None
        assert reason_of(node, wants(7), held=used) is Reason.GPU_DEGRADED

    @given(used=st.lists(st.integers(0, 4), min_size=8, max_size=8), count=st.integers(1, 8))
    def test_to_know_the_shares_never_adds_a_veto(self, used: list[int], count: int) -> None:
        """Without a word on sharing any GPU may come, so what is known only narrows that."""
        node = shared()
        blind = reason_of(replace(node, sharing=None), wants(count), held=taken(node, *used))
        assert blind is Reason.GPU_DEGRADED
        assert reason_of(node, wants(count), held=taken(node, *used)) in {None, blind}


class TestTopologyManager:
    """Kubelet offers the plugin the GPUs of the fewest NUMA nodes that have enough."""

    @pytest.mark.parametrize("policy", list(TopologyPolicy))
    def test_a_set_over_two_sockets_is_judged_only_where_it_may_come(
        self, policy: TopologyPolicy
    ) -> None:
        """GPUs 0, 4 and 5 of a cube mesh are free: the plugin likes the link from 0 to 4, kubelet
        keeps to socket 1 unless its policy is `none`.
        """
        node = replace(
            sick(dgx1v(), 0, cause_of(Health.DEGRADED)),
            mode=AllocationMode.NVIDIA,
            topology_policy=policy,
        )
        pair = Need(work=WorkClass.GANG, count=2)
        expected = Reason.GPU_DEGRADED if policy is TopologyPolicy.NONE else None
        assert reason_of(node, pair, held=holding(node, 1, 2, 3, 6, 7)) is expected
