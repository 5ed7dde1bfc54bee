"""/filter, /prioritize and /preempt answer from what is kept ready; /explain judges each node again.

So each is a check of the others, on any fleet.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from asking import Json, pod, refused, scores
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import dgx_h100
from replicas import Replica
from strategies import fleet, fleets

from scoring.model import Allocation, Fleet, GangKey, PodUid
from scoring.reasons import Reason

TEXT = {reason.value: reason.text for reason in Reason}


def member(gpus: int, gang: str | None) -> Json:
    """A pod in the namespace in which the gangs of random fleets are bound."""
    asker = pod(gpus, gang=gang)
    asker["metadata"]["namespace"] = "default"
    return asker


ASKERS = st.builds(member, st.integers(1, 4), st.sampled_from([None, "bound", "unbound"]))


@settings(max_examples=80, deadline=None)
@given(found=fleets(most_nodes=8), asker=ASKERS, narrow=st.integers(0, 4))
def test_explain_accounts_for_every_answer(found: Fleet, asker: Json, narrow: int) -> None:
    """Who passes, in which order, with which score, and why not."""
    one = Replica(found, narrow=narrow)
    names = [*sorted(found.nodes, reverse=True), "stranger"]
    told: dict[str, Any] = one.explain(asker, names)["nodes"]
    fits = [name for name in names if told[name]["verdict"] == "pass"]
    answer = one.filter(asker, names)
    passed = answer["NodeNames"]
    if narrow:
        # Ranks that differ by a rounding error only are in either order.
        ranks = sorted((told[name]["rank"] for name in fits), reverse=True)
        assert [told[name]["rank"] for name in passed] == ranks[:narrow]
        assert set(passed) <= set(fits)
        assert len(set(passed)) == len(passed)
    else:
        assert passed == fits
    reasons = {name: TEXT[told[name]["reason"]] for name in names if name not in fits}
    assert refused(answer) == ({} if fits else reasons)
    unresolvable = {name for name in reasons if told[name]["unresolvable"]}
    assert set(answer["FailedAndUnresolvableNodes"]) == (set() if fits else unresolvable)
    points = {name: math.floor(10 * (told[name]["rank"] or 0) + 0.5) for name in names}
    assert scores(one.prioritize(asker, names)) == points
    assert set(one.preempt(asker, {name: [] for name in names})) == set(fits)


@settings(max_examples=40, deadline=None)
@given(found=fleets(), asker=ASKERS, data=st.data())
def test_a_record_counts_what_explain_counts(found: Fleet, asker: Json, data: Any) -> None:
    """Counts by reason and the best two, worked out later by another thread."""
    one = Replica(found)
    names = data.draw(st.permutations([*found.nodes, "stranger"]))
    told = one.explain(asker, names)
    one.filter(asker, names)
    record = one.records[-1].fields()
    assert record["counts"] == told["counts"]
    assert record["verdict"] == ("pass" if sum(told["counts"].values()) < len(names) else "veto")


def bound(node: str, gang: str) -> Allocation:
    """A member of a gang that holds GPUs of a node, nobody knows which."""
    return Allocation(
        node=dgx_h100(name=node).name,
        uid=PodUid(f"on-{node}"),
        namespace="lab",
        pod=f"on-{node}",
        resource="nvidia.com/gpu",
        count=1,
        gang=GangKey(f"lab/{gang}"),
    )


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_members_go_to_where_their_gang_is_and_others_do_not(verb: str) -> None:
    """In the rack of a bound member first; for another gang by name."""
    racks = {"a": "r1", "b": "r1", "c": "r2", "d": "r2"}
    nodes = [
        dgx_h100(name=name, labels={"topology.gke.io/rack": rack}) for name, rack in racks.items()
    ]
    held = bound("d", "sweep")
    one = Replica(fleet(*nodes, allocations={held.node: (held,)}))
    ours, theirs = pod(4, gang="sweep"), pod(4, gang="other")
    if verb == "filter":
        assert one.filter(ours, racks)["NodeNames"] == ["d", "c", "a", "b"]
        assert one.filter(theirs, "abc")["NodeNames"] == ["a", "b", "c"]
        assert one.explain(ours)["nodes"]["d"]["parts"]["domain"] == 1
    else:
        near, far = (scores(one.prioritize(asker, racks)) for asker in (ours, theirs))
        assert near["a"] == near["b"] < near["c"]
        assert far["a"] == far["b"] == far["c"]
