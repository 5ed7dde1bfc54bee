"""What is kept of a pod, as each convention writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from cluster_objects import Json, container
from kube_objects import (
    ALL,
    CREATED_S,
    coscheduling,
    indexed_job,
    jobset,
    keep,
    kept,
    kueue_group,
    kueue_job,
    lws,
    member,
    native,
    pending,
    ray,
    volcano,
)

from extender.controller.cluster.pods import PodReader
from extender.controller.cluster.shapes import POD
from extender.controller.cluster.values import Kept, Load
from extender.controller.projection import ProjectionError
from scoring.gangs.rules import WAKE, GangRules, OnShortfall
from scoring.gangs.values import GangPod, Owner
from scoring.model import Convention, Need, NodeName, WorkClass
from scoring.planning.selection import Operator, Requirement, Selection, Term, Toleration
from scoring.planning.values import NO_TOPOLOGY, Amounts, HostPort, Topology
from scoring.policy import DEFAULT
from scoring.reasons import Reason
from scoring.topology import Level

GATE = "surefoot.dev/gang"
REFUSED = {
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 GPU unhealthy.",
            "lastTransitionTime": "2026-11-29T10:05:00Z",
        }
    ]
}
ERROR = {"conditions": [{**REFUSED["conditions"][0], "reason": "SchedulerError"}]}


CONVENTIONS: dict[str, tuple[Json, Convention, str, int | None]] = {
    "Indexed Job": (indexed_job(3), Convention.SUREFOOT, "ml/train", 3),
    "native PodGroup": (native(1), Convention.NATIVE, "ml/ranks", None),
    "coscheduling": (coscheduling(2), Convention.COSCHEDULING, "ml/torch", 2),
    "Volcano": (volcano(4), Convention.VOLCANO, "ml/vc-0f3a", 4),
    "Kueue group": (kueue_group(), Convention.KUEUE, "ml/sweep", None),
    "Kueue Job": (kueue_job(5), Convention.KUEUE_WORKLOAD, "ml/job-tune-7f2c1", 5),
    "LWS leader": (lws(), Convention.LWS, "ml/8d20b1", 0),
    "LWS worker": (lws(2), Convention.LWS, "ml/8d20b1", 2),
    "JobSet of one Job": (jobset(6, jobs=1), Convention.JOBSET, "ml/uid-llm", 6),
    "JobSet of two": (jobset(6, job=1), Convention.JOBSET, "ml/uid-llm", None),
    "KubeRay": (ray(), Convention.RAY, "ml/raycluster", None),
}


@pytest.mark.parametrize("case", CONVENTIONS.values(), ids=CONVENTIONS)
def test_members_of_every_convention(case: tuple[Json, Convention, str, int | None]) -> None:
    """Which gang, and which of its members; of several Jobs the index tells nothing."""
    body, convention, key, index = case
    found = member(body)
    assert (found.gang.convention, found.gang.key, found.member.index) == (convention, key, index)
    assert found.counts


GKE = "cloud.google.com/gke-nodepool"
TOPOLOGIES: dict[str, tuple[Json, Topology]] = {
    "a word": ({"surefoot.dev/topology-required": "rack"}, Topology(required=Level.RACK)),
    "a word in capitals": ({"surefoot.dev/topology-required": "Rack"}, Topology(required=Level.RACK)),
    "a label": ({"surefoot.dev/topology-required": "row"}, Topology(required="row")),
    "two words": (
        {"surefoot.dev/topology-required": "zone", "surefoot.dev/topology-preferred": "clique"},
        Topology(required=Level.ZONE, preferred=Level.CLIQUE),
    ),
    "blank": ({"surefoot.dev/topology-required": " "}, NO_TOPOLOGY),
    "longer than any label": ({"surefoot.dev/topology-required": "x" * 99_999}, Topology(required="x" * 400)),
    "Surefoot's before Kueue's": (
        {
            "surefoot.dev/topology-preferred": "node",
            "kueue.x-k8s.io/podset-required-topology": "row",
        },
        Topology(preferred=Level.NODE),
    ),
    "Kueue, unconstrained": ({"kueue.x-k8s.io/podset-unconstrained-topology": "true"}, NO_TOPOLOGY),
    "Kueue, preferred": (
        {"kueue.x-k8s.io/podset-preferred-topology": "kubernetes.io/hostname"},
        Topology(preferred=Level.NODE),
    ),
    "a clique": ({"surefoot.dev/topology-required": "nvidia.com/gpu.clique"}, Topology(required=Level.CLIQUE)),
}  # fmt: skip


@pytest.mark.parametrize("case", TOPOLOGIES.values(), ids=TOPOLOGIES)
def test_how_near_a_pod_wants_its_gang(case: tuple[dict[str, str], Topology]) -> None:
    """By a level, by one of the labels that name it, or by any other node label."""
    annotations, topology = case
    body = pending("w", labels={"surefoot.dev/gang": "g"}, annotations=annotations)
    assert member(body).topology == topology


@pytest.mark.parametrize(
    ("body", "topology"),
    [
        (kueue_job(), Topology(required=Level.BLOCK)),
        (lws(), Topology(required="example.com/pod-of-racks")),
        (jobset(jobs=1), Topology(required=GKE)),
        (jobset(jobs=2), NO_TOPOLOGY),
    ],
)
def test_topologies_of_other_conventions(body: Json, topology: Topology) -> None:
    """A JobSet's is of each Job, so it binds the gang only where that is one Job."""
    assert member(body).topology == topology


def test_all_of_a_member() -> None:
    """What planning needs, and what writes test."""
    body = indexed_job(
        0,
        version=77,
        gates=(GATE, "other"),
        priority=7,
        nodeSelector={"pool": "a"},
        containers=[
            container(
                4,
                ports=[{"containerPort": 1, "hostPort": 2}],
            )
        ],
        overhead={"cpu": "1"},
        status={"nominatedNodeName": "n1", **REFUSED},
    )
    body["metadata"]["annotations"]["surefoot.dev/on-shortfall"] = "preempt"
    found = member(body)
    assert (found.namespace, found.version, found.priority) == ("ml", "77", 7)
    assert found.owner == Owner(kind="Job", name="train", uid="uid-train")
    assert found.created_s == CREATED_S
    assert found.on_shortfall is OnShortfall.PREEMPT
    assert (found.gated, found.counts, found.refused) == (True, False, True)
    assert (found.member.bound, found.member.nominated) == (None, "n1")
    shape = found.member.shape
    assert shape.need == Need(work=WorkClass.GANG, count=4)
    assert shape.amounts == Amounts(cpu_m=1000)
    assert shape.ports == {HostPort(2)}
    assert shape.selection == Selection(selector=frozenset({("pool", "a")}))


@pytest.mark.parametrize(
    ("reason", "refused"),
    [("Unschedulable", True), ("SchedulerError", False), ("SchedulingGated", False)],
)
def test_only_a_cycle_that_found_no_node_is_a_refusal(reason: str, refused: bool) -> None:
    """An extender that did not answer says nothing of the planned node, which stays planned."""
    said = {"type": "PodScheduled", "status": "False", "reason": reason}
    assert member(native(status={"conditions": [said]})).refused is refused


def test_a_refusal_for_want_of_a_plan_is_told_apart() -> None:
    """Whatever else kube-scheduler counts beside it."""
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    for reason, untold in ((Reason.GANG_SHORT, True), (Reason.PLANNED_ELSEWHERE, False)):
        text = f"0/4 nodes are available: 1 Insufficient cpu, 3 {reason.text}."
        found = member(native(status={"conditions": [{**said, "message": text}]}))
        assert (found.refused, found.untold) == (True, untold)


def test_selections_are_read_as_the_scheduler_reads_them() -> None:
    """Selector, required terms, tolerations; soft terms are none of this."""
    expressions = [
        {"key": "pool", "operator": "In", "values": ["a", "b"]},
        {"key": "old", "operator": "DoesNotExist"},
    ]
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]
    node_affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": expressions, "matchFields": fields}, {}]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}],
    }
    found = member(
        native(
            affinity={"nodeAffinity": node_affinity},
            tolerations=[
                {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
        )
    ).member.shape.selection
    assert found.affinity == (
        Term(
            labels=(
                Requirement(key="pool", operator=Operator.IN, values=("a", "b")),
                Requirement(key="old", operator=Operator.DOES_NOT_EXIST),
            ),
            fields=(Requirement(key="metadata.name", operator=Operator.NOT_IN, values=("n1",)),),
        ),
        Term(),
    )
    assert found.tolerations == (
        Toleration(key="gpu", value="yes", effect="NoSchedule"),
        Toleration(operator="Exists", effect="NoExecute"),
    )


def test_an_affinity_without_terms_is_met_nowhere() -> None:
    """And one that is not there everywhere."""
    required: Json = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    found = member(native(affinity={"nodeAffinity": required}))
    assert found.member.shape.selection.affinity == ()
    assert member(native(affinity={})).member.shape.selection.affinity is None


def test_an_operator_that_is_none_is_named() -> None:
    """With the path."""
    terms = [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    with pytest.raises(ProjectionError, match="'Near' is no operator"):
        keep(native(affinity={"nodeAffinity": required}))


STATES: dict[str, tuple[Json, dict[str, bool]]] = {
    "running": (native(node="n1", phase="Running"), {"counts": True}),
    "succeeded": (native(node="n1", phase="Succeeded"), {"finished": True, "succeeded": True}),
    "failed": (native(node="n1", phase="Failed"), {"finished": True, "succeeded": False}),
    "never bound": (native(phase="Failed"), {"finished": True}),
    "at a foreign gate": (native(gates=("kueue.x-k8s.io/admission",)), {"counts": False}),
    "at our gate": (native(gates=(GATE,)), {"counts": True, "gated": True}),
    "refused": (native(status=REFUSED), {"counts": True, "refused": True}),
    "failed by an error": (native(status=ERROR), {"counts": True, "refused": False}),
}


@pytest.mark.parametrize("case", STATES.values(), ids=STATES)
def test_states_of_a_member(case: tuple[Json, dict[str, bool]]) -> None:
    """Finished, leaving and foreign-gated pods stay known and do not count."""
    body, expected = case
    found = member(body)
    assert {name: getattr(found, name) for name in expected} == expected
    body["metadata"]["deletionTimestamp"] = "2026-11-29T11:00:00Z"
    assert (member(body).leaving, member(body).counts) == (True, False)


@pytest.mark.parametrize(
    ("told", "woken_s"),
    [
        ("2026-11-29T10:00:00Z", CREATED_S),
        ("2026-11-29T10:00:00.250000Z", CREATED_S + 0.25),
        ("2026-11-29T10:00:00", None),
        ("just now", None),
        ("", None),
    ],
)
def test_when_a_member_was_woken_last(told: str, woken_s: float | None) -> None:
    """As its annotation says; what names no moment is as good as none."""
    assert member(pending("a", annotations={WAKE: told}, labels={GATE: "a"})).woken_s == woken_s


def test_of_an_ordinary_pod_only_what_it_holds_is_kept() -> None:
    """And nothing at all before it is bound and after its end."""
    requests = {"resources": {"requests": {"cpu": "1"}}}
    body: dict[str, Any] = {"containers": [requests], "priority": 3}
    assert kept(pending("p", node="n1", phase="Running", **body)) == Kept(
        uid=kept(pending("p", node="n1", **body)).uid,
        load=Load(node=NodeName("n1"), amounts=Amounts(1000), ports=frozenset(), priority=3),
    )
    for none in (
        pending("p", **body),
        pending("p", node="n1", phase="Succeeded", **body),
        pending("p", 8),
    ):
        assert keep(none) is None


def test_a_bound_pod_holds_its_gpus_to_its_end() -> None:
    """Though it is being deleted."""
    body = pending("p", 2, node="n1", phase="Running")
    body["metadata"]["deletionTimestamp"] = "2026-11-29T11:00:00Z"
    (allocation,) = kept(body).gpus
    assert (allocation.node, allocation.count, kept(body).load is not None) == ("n1", 2, True)


def test_conventions_that_are_not_planned_cost_nothing() -> None:
    """Their members are ordinary pods."""
    assert keep(kueue_job(), GangRules()) is None
    assert kept(kueue_job(node="n1"), GangRules()).member is None


def test_equal_parts_are_one_object() -> None:
    """Of thousands of pods of one template."""
    reader = PodReader(DEFAULT, ALL)

    def read(body: Json) -> GangPod:
        found = reader.read(POD.decode(msgspec.json.encode(body)))
        assert found is not None
        assert found.member is not None
        return found.member

    one, two = read(coscheduling(0)), read(coscheduling(1))
    parts: list[Callable[[GangPod], object]] = [
        lambda pod: pod.member.shape,
        lambda pod: pod.gang,
        lambda pod: pod.owner,
        lambda pod: pod.gates,
    ]
    assert all(part(one) is part(two) for part in parts)


@pytest.mark.parametrize(
    ("reason", "refused"),
    [("Unschedulable", True), ("SchedulerError", False), ("SchedulingGated", False)],
)
def test_an_error_is_no_refusal_of_a_member(reason: str, refused: bool) -> None:
    """An extender that does not answer clears the nomination, and tells nothing of the node."""
    said = {"type": "PodScheduled", "status": "False", "reason": reason}
    assert member(indexed_job(status={"conditions": [said]})).refused is refused


def test_a_pod_without_uid_is_an_error() -> None:
    """Names are used again."""
    body = pending("p")
    del body["metadata"]["uid"]
    with pytest.raises(ProjectionError, match=r"metadata.uid"):
        keep(body)


@pytest.mark.parametrize(
    ("written", "woken_s"),
    [
        ("2026-11-29T10:00:00.500000Z", CREATED_S + 0.5),
        ("2026-11-29T10:00:00", None),
        ("just now", None),
        ("", None),
    ],
)
def test_a_member_tells_when_it_was_woken(written: str, woken_s: float | None) -> None:
    """Else it would be woken again at once, and again. What is no moment with its zone is none."""
    body = indexed_job(3)
    body["metadata"]["annotations"]["surefoot.dev/wake"] = written
    assert member(body).woken_s == woken_s


def test_a_pod_that_never_preempts_waits_instead() -> None:
    """kube-scheduler would evict nobody for it, whatever its annotation says."""
    body = indexed_job(0, preemptionPolicy="Never")
    body["metadata"].setdefault("annotations", {})["surefoot.dev/on-shortfall"] = "preempt"
    assert member(body).on_shortfall is OnShortfall.WAIT
