"""Gangs are read from one convention each, in a fixed order, and never from two."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.gang import RULES, PodFacts, WorkloadRef, detect
from scoring.model import Convention, GangKey, GangRef

KOORDINATOR = "gang.scheduling.koordinator.sh/"
KUEUE = "kueue.x-k8s.io/"
LWS = "leaderworkerset.sigs.k8s.io/"
YUNIKORN = "yunikorn.apache.org/"
JOBSET_UID = "5f0c6a52-7d4b-4b8e-9f0e-0a8f3f6a1d11"

EXAMPLES: dict[Convention, tuple[PodFacts, str, int | None]] = {
    Convention.SUREFOOT: (
        PodFacts(
            namespace="lab",
            labels={"surefoot.dev/gang": "sweep", "surefoot.dev/gang-size": "6"},
        ),
        "lab/sweep",
        6,
    ),
    Convention.NATIVE: (PodFacts(namespace="lab", scheduling_group="ranks"), "lab/ranks", None),
    Convention.WORKLOAD: (
        PodFacts(
            namespace="lab",
            workload_ref=WorkloadRef(name="llm", pod_group="ranks", replica_key="b"),
        ),
        "lab/llm/ranks/b",
        None,
    ),
    Convention.COSCHEDULING: (
        PodFacts(namespace="lab", labels={"scheduling.x-k8s.io/pod-group": "team"}),
        "lab/team",
        None,
    ),
    Convention.COSCHEDULING_LEGACY: (
        PodFacts(
            namespace="lab",
            labels={
                "pod-group.scheduling.sigs.k8s.io/name": "old-team",
                "pod-group.scheduling.sigs.k8s.io/min-available": "3",
            },
        ),
        "lab/old-team",
        3,
    ),
    Convention.KOORDINATOR: (
        PodFacts(
            namespace="lab",
            annotations={f"{KOORDINATOR}name": "k", f"{KOORDINATOR}min-available": "5"},
        ),
        "lab/k",
        5,
    ),
    Convention.VOLCANO: (
        PodFacts(
            namespace="lab",
            annotations={
                "scheduling.volcano.sh/group-name": "lava",
                "scheduling.volcano.sh/group-min-member": "9",
            },
        ),
        "lab/lava",
        9,
    ),
    Convention.KAI: (
        PodFacts(namespace="lab", annotations={"pod-group-name": "pg-kai"}),
        "lab/pg-kai",
        None,
    ),
    Convention.KUEUE: (
        PodFacts(
            namespace="lab",
            labels={f"{KUEUE}pod-group-name": "queued"},
            annotations={f"{KUEUE}pod-group-total-count": "4"},
        ),
        "lab/queued",
        4,
    ),
    Convention.KUEUE_WORKLOAD: (
        PodFacts(
            namespace="lab",
            labels={f"{KUEUE}podset": "main"},
            annotations={f"{KUEUE}workload": "job-fit-1a2b"},
        ),
        "lab/job-fit-1a2b",
        None,
    ),
    Convention.LWS: (
        PodFacts(
            namespace="lab", labels={f"{LWS}group-key": "9c1d"}, annotations={f"{LWS}size": "4"}
        ),
        "lab/9c1d",
        4,
    ),
    Convention.JOBSET: (
        PodFacts(
            namespace="lab",
            labels={
                "jobset.sigs.k8s.io/jobset-name": "js",
                "jobset.sigs.k8s.io/jobset-uid": JOBSET_UID,
            },
        ),
        f"lab/{JOBSET_UID}",
        None,
    ),
    Convention.GROVE: (
        PodFacts(namespace="lab", labels={"grove.io/podgang": "g-0"}),
        "lab/g-0",
        None,
    ),
    Convention.YUNIKORN: (
        PodFacts(
            namespace="lab",
            labels={f"{YUNIKORN}app-id": "app-3"},
            annotations={
                f"{YUNIKORN}task-group-name": "exec",
                f"{YUNIKORN}task-groups": json.dumps(
                    [{"name": "driver", "minMember": 1}, {"name": "exec", "minMember": 7}]
                ),
            },
        ),
        "lab/app-3",
        8,
    ),
    Convention.RAY: (
        PodFacts(
            namespace="lab",
            labels={"ray.io/cluster": "rc", "ray.io/gang-scheduling-enabled": "true"},
        ),
        "lab/rc",
        None,
    ),
}


def merged(first: PodFacts, second: PodFacts) -> PodFacts:
    """A pod that carries the marks of both."""
    return PodFacts(
        namespace="lab",
        labels={**first.labels, **second.labels},
        annotations={**first.annotations, **second.annotations},
        scheduling_group=first.scheduling_group or second.scheduling_group,
        workload_ref=first.workload_ref or second.workload_ref,
    )


def test_every_convention_has_one_rule_in_its_order() -> None:
    """The table follows the order of `Convention`, which is what users are told."""
    assert [rule.convention for rule in RULES] == list(Convention)


@pytest.mark.parametrize("convention", Convention)
def test_each_convention_is_recognised_by_its_own_marks(convention: Convention) -> None:
    """A pod with the marks of one convention is in that gang, with the minimum it states."""
    pod, key, minimum = EXAMPLES[convention]
    found = detect(pod)
    assert found is not None
    assert (found.convention, found.key, found.min) == (convention, key, minimum)


@given(st.sampled_from(list(Convention)), st.sampled_from(list(Convention)))
def test_first_match_wins_and_is_never_mixed(one: Convention, other: Convention) -> None:
    """A pod under two conventions gets exactly what the earlier one alone would give."""
    earlier = min(one, other, key=list(Convention).index)
    assert detect(merged(EXAMPLES[one][0], EXAMPLES[other][0])) == detect(EXAMPLES[earlier][0])


@given(st.sampled_from(list(Convention)), st.text("ab-", min_size=1, max_size=5))
def test_the_namespace_is_part_of_the_key(convention: Convention, namespace: str) -> None:
    """Equal names in two namespaces are two gangs."""
    pod = EXAMPLES[convention][0]
    found = detect(
        PodFacts(
            namespace=namespace,
            labels=pod.labels,
            annotations=pod.annotations,
            scheduling_group=pod.scheduling_group,
            workload_ref=pod.workload_ref,
        )
    )
    assert found is not None
    assert found.key.startswith(f"{namespace}/")


@pytest.mark.parametrize(
    "pod",
    [
        PodFacts(namespace="lab"),
        PodFacts(namespace="lab", labels={"batch.kubernetes.io/job-name": "sweep"}),
        PodFacts(namespace="lab", labels={f"{KUEUE}queue-name": "q"}),
        PodFacts(namespace="lab", labels={f"{YUNIKORN}app-id": "app-3"}),
        PodFacts(namespace="lab", labels={"ray.io/cluster": "rc"}),
        PodFacts(
            namespace="lab", labels={"ray.io/cluster": "rc", "ray.io/gang-scheduling-enabled": "false"}
        ),
        PodFacts(namespace="lab", annotations={f"{KUEUE}workload": "w"}),
        PodFacts(
            namespace="lab",
            labels={f"{KUEUE}podset": "main", f"{KUEUE}managed": "true"},
            annotations={f"{KUEUE}workload": "pod-single"},
        ),
        PodFacts(namespace="lab", labels={"scheduling.x-k8s.io/pod-group": ""}),
        PodFacts(namespace="lab", annotations={"pod-group-name": "  "}),
        PodFacts(namespace="lab", scheduling_group=""),
        PodFacts(namespace="lab", workload_ref=WorkloadRef(name="", pod_group="ranks")),
    ],
    ids=[
        "plain", "job", "queue", "application", "ray cluster", "ray switched off", "no pod set",
        "plain pod under Kueue", "empty label", "blank annotation", "empty group", "no workload",
    ],
)  # fmt: skip
def test_what_names_no_gang_is_none(pod: PodFacts) -> None:
    """Jobs, queues, applications and empty names make no gang."""
    assert detect(pod) is None


@pytest.mark.parametrize(
    "pod",
    [
        PodFacts(
            namespace="lab", labels={"surefoot.dev/gang": "one", "surefoot.dev/gang-size": "1"}
        ),
        PodFacts(
            namespace="lab", labels={f"{LWS}group-key": "9c1d"}, annotations={f"{LWS}size": "1"}
        ),
        PodFacts(
            namespace="lab",
            annotations={f"{KOORDINATOR}name": "k", f"{KOORDINATOR}total-number": "1"},
        ),
        PodFacts(
            namespace="lab",
            annotations={f"{KOORDINATOR}name": "k", f"{KOORDINATOR}min-available": "1"},
            labels={"grove.io/podgang": "g-0"},
        ),
    ],
    ids=["size one", "leader alone", "total of one", "first match says one"],
)
def test_a_minimum_of_one_is_no_gang(pod: PodFacts) -> None:
    """A group of one member is no gang, and no later convention makes it one."""
    assert detect(pod) is None


@pytest.mark.parametrize(
    "text", ["", "0", "-3", "four", "4.0", " 4", "4 ", "1_000", "٤", "9" * 30, "0x4", "4\n"]
)
def test_an_unreadable_number_is_unknown_and_never_one(text: str) -> None:
    """The pod stays a gang member when its numbers are nonsense; the minimum is unknown."""
    found = detect(
        PodFacts(namespace="lab", labels={"surefoot.dev/gang": "g", "surefoot.dev/gang-size": text})
    )
    assert found == GangRef(key=GangKey("lab/g"), convention=Convention.SUREFOOT)


@pytest.mark.parametrize("text", ["4", "+4", "004"])
def test_numbers_are_read_as_go_reads_them(text: str) -> None:
    """What strconv.Atoi takes is a number."""
    found = detect(
        PodFacts(namespace="lab", labels={"surefoot.dev/gang": "g", "surefoot.dev/gang-size": text})
    )
    assert found is not None
    assert (found.min, found.size) == (4, 4)


@pytest.mark.parametrize(
    "groups",
    [
        "", "{", "null", "7", "[]", "{}", "[1]", '[{"name":"exec"}]', '[{"minMember":"3"}]',
        '[{"minMember":-3}]', '[{"minMember":true}]', '[{"minMember":1.5}]', "[" * 100_000,
        '[{"minMember":' + "9" * 5000 + "}]",
    ],
)  # fmt: skip
def test_broken_task_groups_leave_the_minimum_unknown(groups: str) -> None:
    """YuniKorn's JSON annotation may be anything; the pod is still a member of its application."""
    found = detect(
        PodFacts(
            namespace="lab",
            labels={f"{YUNIKORN}app-id": "app-3"},
            annotations={
                f"{YUNIKORN}task-group-name": "exec",
                f"{YUNIKORN}task-groups": groups,
            },
        )
    )
    assert found == GangRef(key=GangKey("lab/app-3"), convention=Convention.YUNIKORN)


def test_koordinator_size_defaults_to_its_minimum() -> None:
    """Koordinator expects as many members as it needs, unless told a total."""
    base = {f"{KOORDINATOR}name": "k", f"{KOORDINATOR}min-available": "3"}
    alone = detect(PodFacts(namespace="lab", annotations=base))
    told = detect(
        PodFacts(namespace="lab", annotations={**base, f"{KOORDINATOR}total-number": "5"})
    )
    assert alone is not None
    assert told is not None
    assert (alone.size, told.size) == (3, 5)


def test_a_jobset_made_again_under_its_name_is_another_gang() -> None:
    """The uid is the identity where the pod tells it; else the name has to do."""
    label = "jobset.sigs.k8s.io/jobset-"
    first, second, named = (
        detect(PodFacts(namespace="lab", labels={f"{label}name": "js", **uid}))
        for uid in ({f"{label}uid": "u-1"}, {f"{label}uid": "u-2"}, {})
    )
    assert first is not None
    assert second is not None
    assert named is not None
    assert first.key != second.key
    assert (first.uid, named.uid, named.key) == ("u-1", None, "lab/js")


def test_a_member_that_joins_before_its_group_exists_is_no_single_pod() -> None:
    """The group object is not looked at: a pod that names a group is a gang member."""
    found = detect(PodFacts(namespace="lab", scheduling_group="not-yet-there"))
    assert found == GangRef(key=GangKey("lab/not-yet-there"), convention=Convention.NATIVE)


@pytest.mark.parametrize("name", ["my gang", "a\nb", "a\tb", "\x1b[2J", "\u202e", "x" * 100_000])
def test_a_name_that_no_object_can_have_becomes_one_that_documents_can_hold(name: str) -> None:
    """Annotations hold anything. Two such names are two gangs."""
    found, other = (
        detect(PodFacts(namespace="lab", annotations={f"{KOORDINATOR}name": each}))
        for each in (name, name + "!")
    )
    assert found is not None
    assert other is not None
    assert found.key != other.key
    assert re.fullmatch(r"lab/[!-~]{1,448}", found.key)
