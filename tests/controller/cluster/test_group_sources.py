"""What each kind of object says of gangs."""

from __future__ import annotations

import msgspec
import pytest
from cluster_objects import Json
from kube_objects import ALL, encoded, object_, source

from extender.controller.cluster.groups import SOURCES, needed
from scoring.gangs.gathering import Crew
from scoring.gangs.rules import GangRules, Hold
from scoring.gangs.values import Group
from scoring.model import Convention
from scoring.planning.values import NO_TOPOLOGY, Topology
from scoring.topology import Level

NATIVE = "podgroups.scheduling.k8s.io"
KUEUE = "workloads.kueue.x-k8s.io"
JOBSET = "jobsets.jobset.x-k8s.io"
BLOCK = "cloud.google.com/gce-topology-block"


def groups(name: str, body: Json) -> tuple[Group, ...]:
    """What an object of one row says of gangs."""
    found = source(name).read(encoded(body))
    return tuple(each for each in found if isinstance(each, Group))


def gang_policy(count: int) -> Json:
    """All or nothing."""
    return {"gang": {"minCount": count}}


def job(parallelism: int | None, completions: int | None = None, **more: object) -> Json:
    """One of a JobSet's."""
    return {
        "name": "any",
        "template": {"spec": {"parallelism": parallelism, "completions": completions}},
        **more,
    }


def pod_set(count: int, **more: object) -> Json:
    """One of a Kueue Workload's."""
    return {"name": "main", "count": count, **more}


CASES: dict[str, tuple[str, Json, tuple[int | None, int | None, bool]]] = {
    "native": (NATIVE, {"schedulingPolicy": gang_policy(4)}, (4, None, True)),
    "native, basic": (NATIVE, {"schedulingPolicy": {"basic": {}}}, (None, None, False)),
    "native, one": (NATIVE, {"schedulingPolicy": gang_policy(1)}, (1, None, False)),
    "native, nothing said": (NATIVE, {}, (None, None, True)),
    "coscheduling": ("podgroups.scheduling.x-k8s.io", {"minMember": 3}, (3, None, True)),
    "coscheduling, none": ("podgroups.scheduling.x-k8s.io", {"minMember": 0}, (None, None, True)),
    "Volcano": (
        "podgroups.scheduling.volcano.sh",
        {"minMember": 5, "queue": "default", "minResources": {"cpu": "5"}},
        (5, None, True),
    ),
    "KAI": ("podgroups.scheduling.run.ai", {"minMember": 2, "queue": "q"}, (2, None, True)),
    "KAI of subgroups": ("podgroups.scheduling.run.ai", {"minSubGroup": 2}, (None, None, True)),
    "Kueue": (KUEUE, {"podSets": [pod_set(1), pod_set(7)]}, (8, 8, True)),
    "Kueue, partial": (KUEUE, {"podSets": [pod_set(8, minCount=4)]}, (4, 8, True)),
    "Kueue, one pod": (KUEUE, {"podSets": [pod_set(1)]}, (1, 1, False)),
    "JobSet": (
        JOBSET,
        {"replicatedJobs": [job(1), job(4, 4, replicas=2), job(8, 2)]},
        (11, 11, True),
    ),
    "JobSet, one after the other": (
        JOBSET,
        {
            "replicatedJobs": [job(1), job(4, replicas=2)],
            "startupPolicy": {"startupPolicyOrder": "InOrder"},
        },
        (1, 9, True),
    ),
    "JobSet, some depend": (
        JOBSET,
        {"replicatedJobs": [job(2), job(4, dependsOn=[{"name": "any", "status": "Ready"}])]},
        (2, 6, True),
    ),
    "JobSet of one pod": (JOBSET, {"replicatedJobs": [job(None)]}, (1, 1, False)),
    "Grove": (
        "podgangs.scheduler.grove.io",
        {
            "podgroups": [
                {"name": "a", "minReplicas": 1, "podReferences": [{"name": "a-0"}]},
                {"name": "b", "minReplicas": 2, "podReferences": [{}, {}, {}]},
            ]
        },
        (3, 4, True),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_how_large_a_gang_is(case: tuple[str, Json, tuple[int | None, int | None, bool]]) -> None:
    """Minimum, size, and whether it is a gang at all. What is not stated is unknown."""
    name, spec, expected = case
    found = groups(name, object_("g", spec))
    assert found
    for each in found:
        assert (each.min, each.size, each.gang) == expected
        assert each.uid == "uid-g"
    assert {each.convention for each in found} <= source(name).conventions


def test_what_kueue_admitted_counts() -> None:
    """It may admit fewer than were asked for, and the Job is cut to that."""
    spec = {"podSets": [pod_set(8, minCount=4), {"name": "driver", "count": 1}]}
    admitted = {"podSetAssignments": [{"name": "main", "count": 6}]}
    found = groups(KUEUE, object_("job-tune-7f2c1", spec, {"admission": admitted}))
    assert {each.convention for each in found} == {Convention.KUEUE, Convention.KUEUE_WORKLOAD}
    for each in found:
        assert (each.key, each.min, each.size) == ("ml/job-tune-7f2c1", 7, 7)


def test_a_workload_of_135_has_several_groups() -> None:
    """Each is a gang, or not."""
    spec = {
        "podGroups": [
            {"name": "ranks", "policy": gang_policy(4)},
            {"name": "web", "policy": {"basic": {}}},
        ]
    }
    found = groups("workloads.scheduling.k8s.io", object_("llm", spec))
    assert [(each.key, each.min, each.gang) for each in found] == [
        ("ml/llm/ranks", 4, True),
        ("ml/llm/web", None, False),
    ]


def test_a_jobset_is_known_by_uid_and_by_name() -> None:
    """Its pods may say either."""
    found = groups(JOBSET, object_("llm", {"replicatedJobs": [job(2)]}, uid="uid-llm"))
    assert [each.key for each in found] == ["ml/uid-llm", "ml/llm"]


def test_a_job_says_how_many_pods_it_runs() -> None:
    """By its uid."""
    read = source("jobs.batch").read
    body = object_("train", {"parallelism": 4, "completions": 8}, {"succeeded": 3})
    crew = Crew(uid="uid-train", parallelism=4, completions=8, succeeded=3)
    assert read(encoded(body)) == (crew,)
    assert crew.wanted(0) == 4
    assert crew.wanted(6) == 2
    assert read(encoded(object_("one", {}))) == (Crew(uid="uid-one", parallelism=1),)


TOPOLOGIES: dict[str, tuple[str, Json, Topology]] = {
    "native": (
        NATIVE,
        {"schedulingConstraints": {"topology": [{"key": "example.com/row"}]}},
        Topology(required="example.com/row"),
    ),
    "native, none": (NATIVE, {"schedulingConstraints": {"topology": []}}, NO_TOPOLOGY),
    "KAI": (
        "podgroups.scheduling.run.ai",
        {"topologyConstraint": {"requiredTopologyLevel": BLOCK, "preferredTopologyLevel": "row"}},
        Topology(required=Level.BLOCK, preferred="row"),
    ),
    "Kueue": (
        KUEUE,
        {"podSets": [pod_set(1), pod_set(2, topologyRequest={"required": BLOCK})]},
        Topology(required=Level.BLOCK),
    ),
    "Kueue, sets that differ": (
        KUEUE,
        {
            "podSets": [
                pod_set(1, topologyRequest={"preferred": BLOCK}),
                pod_set(2, topologyRequest={"required": BLOCK}),
            ]
        },
        NO_TOPOLOGY,
    ),
    "Grove": (
        "podgangs.scheduler.grove.io",
        {"topologyConstraint": {"packConstraint": {"preferred": "kubernetes.io/hostname"}}},
        Topology(preferred=Level.NODE),
    ),
}


@pytest.mark.parametrize("case", TOPOLOGIES.values(), ids=TOPOLOGIES)
def test_how_near_a_group_wants_its_pods(case: tuple[str, Json, Topology]) -> None:
    """Labels that name a level are that level."""
    name, spec, topology = case
    assert {each.topology for each in groups(name, object_("g", spec))} == {topology}


@pytest.mark.parametrize("row", SOURCES, ids=lambda row: row.name)
def test_anything_but_a_name_may_be_missing(row: object) -> None:
    """Or null, as Go reads null."""
    read = source(getattr(row, "name", "")).read
    for body in (
        {"metadata": {"name": "g"}},
        {"metadata": {"name": "g", "uid": None}, "spec": None},
    ):
        assert isinstance(read(encoded(body)), tuple)
    with pytest.raises(msgspec.DecodeError):
        read(encoded({"metadata": {"name": "g"}, "spec": []}))


def test_only_what_is_planned_is_watched() -> None:
    """By default Surefoot's own gangs, whose size their Job may tell."""
    assert [each.name for each in needed(GangRules())] == ["jobs.batch"]
    assert needed(ALL) == SOURCES
    kai = GangRules(plan={Convention.KAI: Hold.PREFER, Convention.RAY: Hold.OFF})
    assert [each.name for each in needed(kai)] == ["podgroups.scheduling.run.ai"]


def test_no_two_sources_have_one_name() -> None:
    """The view keeps what each said under it."""
    assert len({each.name for each in SOURCES}) == len(SOURCES)
