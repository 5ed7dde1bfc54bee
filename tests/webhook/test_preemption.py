"""/preempt: which candidates stay, and how they are handed back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from asking import Json, pod, preemption
from hypothesis import given
from hypothesis import strategies as st
from machines import dgx_h100
from replicas import Replica
from strategies import fleet

from scoring.model import Allocation, NodeName, PodUid
from scoring.reasons import Reason

NAMES = ("a", "b", "c")
UIDS = ("on-a", "on-b", "on-c", "stranger")
HIGH = pod(8)


def holder(node: str, uid: str) -> Allocation:
    """A pod that holds the whole node."""
    return Allocation(
        node=NodeName(node), uid=PodUid(uid), namespace="lab", pod=uid, resource="nvidia.com/gpu", count=8
    )  # fmt: skip


def full() -> Replica:
    """Three healthy nodes, each held by a pod of its own."""
    held: dict[NodeName, tuple[Allocation, ...]] = {
        NodeName(name): (holder(name, f"on-{name}"),) for name in NAMES
    }
    return Replica(fleet(*(dgx_h100(name=name) for name in NAMES), allocations=held))


@pytest.fixture
def replica() -> Replica:
    """The same, for one test."""
    return full()


def asked(replica: Replica, victims: Mapping[str, list[str]], violations: int = 0) -> Json:
    """The candidates that stay, with their victims."""
    body = preemption(HIGH, victims)
    for each in body["NodeNameToMetaVictims"].values():
        each["NumPDBViolations"] = violations
    answer: Any = replica.post("preempt", body).json
    kept: Json = answer["NodeNameToMetaVictims"]
    return kept


def test_a_candidate_with_a_victim_on_another_node_is_struck(replica: Replica) -> None:
    """kube-scheduler would look for that victim on the candidate, and fail the whole attempt."""
    group = ["on-a", "on-b"]
    assert set(asked(replica, {"a": group, "b": group, "c": ["on-c"]})) == {"c"}
    assert replica.records[-1].fields()["counts"] == {Reason.VICTIM_ELSEWHERE.value: 2}


def test_a_victim_that_the_cache_does_not_know_strikes_nobody(replica: Replica) -> None:
    """It may hold no GPU, or our view lags: only what is known for certain counts."""
    assert set(asked(replica, {"a": ["on-a", "stranger"]})) == {"a"}


def test_a_candidate_without_a_document_is_struck_too(replica: Replica) -> None:
    """It passes for a single pod, and kube-scheduler could not read it all the same."""
    asked_for = {"unreported": ["on-c"], "c": ["on-c"]}
    assert set(asked(replica, asked_for)) == {"c"}


@given(
    victims=st.dictionaries(
        st.sampled_from(NAMES), st.lists(st.sampled_from(UIDS), unique=True, min_size=1)
    ),
    violations=st.integers(0, 2**31),
)
def test_who_stays_does_so_with_victims_and_budgets_as_they_came(
    victims: dict[str, list[str]], violations: int
) -> None:
    """kube-scheduler chooses by the number of disruption budgets broken, so it is never changed."""
    kept = asked(full(), victims, violations)
    assert kept == {
        name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
        for name, uids in victims.items()
        if set(uids) <= {f"on-{name}", "stranger"}
    }
