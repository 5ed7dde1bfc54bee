"""Pods are read as Kubernetes reads them: what they hold at their peak, and what they accept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.wire.asks import AskError, ask_of
from extender.wire.pods import Pod
from scoring.model import Ask, Convention, Health, ResourceKind, WorkClass
from scoring.policy import DEFAULT, Policy, SinglePolicy
from scoring.resources import kind_of

GPU = "nvidia.com/gpu"


def box(gpus: Any = ..., resource: str = GPU, **more: Any) -> dict[str, Any]:
    """A container that has a limit of so many GPUs."""
    limits = {"cpu": "4"} if gpus is ... else {"cpu": "4", resource: gpus}
    return {"name": "c", "resources": {"limits": limits}, **more}


def sidecar(gpus: Any) -> dict[str, Any]:
    """An init container that keeps running."""
    return box(gpus, restartPolicy="Always")


def ask(policy: Policy = DEFAULT, **pod: Any) -> Ask:
    """The ask of a pod with these parts, through JSON as on the wire."""
    body = {"metadata": {"name": "p", "namespace": "lab", "uid": "u-1"}, **pod}
    return ask_of(msgspec.json.decode(msgspec.json.encode(body), type=Pod), policy)


def ask_spec(**spec: Any) -> Ask:
    """The ask of a pod with this spec."""
    return ask(spec=spec)


def noted(of: Ask) -> str:
    """The notes as one text."""
    return "; ".join(of.notes)


@pytest.mark.parametrize(
    ("containers", "init", "count"),
    [
        ([box(8)], [], 8),
        ([box("8")], [], 8),
        ([box(4), box(2)], [], 6),
        ([box(4)], [box(8)], 8),
        ([box(4)], [box(2), box(3)], 4),
        ([box()], [box(2)], 2),
        ([box(4)], [sidecar(1), box(8)], 9),
        ([box(4)], [box(8), sidecar(1)], 8),
        ([box(4)], [sidecar(1)], 5),
        ([box(1)], [sidecar(1), box(2), sidecar(2)], 4),
        ([box(1)], [sidecar(1), box(4), sidecar(2)], 5),
        ([box(0)], [], 0),
        ([], [], 0),
    ],
    ids=[
        "one", "text", "sum of containers", "larger init container", "init containers run alone",
        "init container only", "sidecar beside an init container", "sidecar after it",
        "sidecar beside containers", "sum wins", "peak wins", "zero", "nothing",
    ],
)  # fmt: skip
def test_the_ask_is_the_peak_of_the_pod(
    containers: list[dict[str, Any]], init: list[dict[str, Any]], count: int
) -> None:
    """Containers and sidecars add up, an init container counts with the sidecars before it."""
    need = ask_spec(containers=containers, initContainers=init).need
    assert need.count == count
    assert need.kind is (ResourceKind.WHOLE if count else ResourceKind.NONE)


@given(
    st.lists(st.tuples(st.sampled_from(["run", "init", "side"]), st.integers(0, 16)), max_size=6)
)
def test_the_ask_equals_the_peak_of_a_replayed_start(steps: list[tuple[str, int]]) -> None:
    """The count is the most GPUs held at one time when the pod is started step by step."""
    init = [step for step in steps if step[0] != "run"]
    held, peak = 0, 0
    for what, gpus in init:
        peak = max(peak, held + gpus)
        held += gpus if what == "side" else 0
    peak = max(peak, held + sum(gpus for what, gpus in steps if what == "run"))
    need = ask_spec(
        initContainers=[sidecar(gpus) if what == "side" else box(gpus) for what, gpus in init],
        containers=[box(gpus) for what, gpus in steps if what == "run"],
    ).need
    assert need.count == peak


def test_requests_count_where_no_limit_is_set() -> None:
    """For extended resources requests and limits are equal; either side tells the count."""
    only_requests = {"resources": {"requests": {GPU: "3"}}}
    both = {"resources": {"requests": {GPU: "2"}, "limits": {GPU: "2"}}}
    assert ask_spec(containers=[only_requests]).need.count == 3
    assert ask_spec(containers=[both]).need.count == 2


def test_pod_level_resources_hold_no_gpus() -> None:
    """Pod-level resources cover CPU, memory and huge pages only (KEP-2837)."""
    level = {"limits": {"cpu": "64", GPU: "8"}}
    assert ask_spec(resources=level, containers=[box(2), box(2)]).need.count == 4
    assert ask_spec(resources=level, containers=[box()]).need.kind is ResourceKind.NONE


@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        ("nvidia.com/gpu", ResourceKind.WHOLE),
        ("amd.com/gpu", ResourceKind.WHOLE),
        ("gpu.intel.com/i915", ResourceKind.WHOLE),
        ("gpu.intel.com/xe", ResourceKind.WHOLE),
        ("nvidia.com/mig-1g.10gb", ResourceKind.MIG),
        ("nvidia.com/mig-1g.10gb.me", ResourceKind.MIG),
        ("nvidia.com/gpu.shared", ResourceKind.SHARED),
        ("nvidia.com/mig-3g.20gb.shared", ResourceKind.SHARED),
        ("nvidia.com/gpumem", ResourceKind.NONE),
        ("nvidia.com/gpucores", ResourceKind.NONE),
        ("gpu.intel.com/i915_monitoring", ResourceKind.NONE),
        ("example.com/nvidia.com/gpu", ResourceKind.NONE),
        ("nvidia.com/gpu\n", ResourceKind.NONE),
        ("cpu", ResourceKind.NONE),
        ("", ResourceKind.NONE),
    ],
)
def test_a_resource_is_known_by_its_whole_name(resource: str, kind: ResourceKind) -> None:
    """Only the names that device plugins register for GPUs and their parts are GPUs."""
    assert kind_of(resource) is kind


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"])
def test_parts_of_a_gpu_are_judged_on_health_only_and_it_is_said(resource: str) -> None:
    """MIG devices and shares come with a note."""
    of = ask_spec(containers=[box(2, resource)])
    assert (of.need.resource, of.need.count) == (resource, 2)
    assert "judged on health only" in noted(of)


def test_of_several_resources_one_is_judged_and_the_others_are_named() -> None:
    """Whole GPUs come before MIG devices before shares; then the larger count; then the name."""
    of = ask_spec(
        containers=[box(2), box(7, "nvidia.com/mig-1g.10gb"), box(9, "nvidia.com/gpu.shared")]
    )
    assert (of.need.resource, of.need.count, of.need.kind) == (GPU, 2, ResourceKind.WHOLE)
    assert "nvidia.com/gpu.shared, nvidia.com/mig-1g.10gb" in noted(of)
    assert ask_spec(containers=[box(2), box(4, "amd.com/gpu")]).need.resource == "amd.com/gpu"


def test_a_pod_with_only_resource_claims_asks_for_nothing_and_says_so() -> None:
    """How many GPUs a DRA claim holds does not stand in the pod."""
    of = ask_spec(containers=[box()], resourceClaims=[{"name": "gpus"}])
    assert (of.need.kind, of.need.count) == (ResourceKind.NONE, 0)
    assert "resource claims" in noted(of)


@pytest.mark.parametrize("quantity", [-1, "1.5", None, "many", "1e308"])
@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_a_malformed_quantity_is_an_error_that_names_its_path(where: str, quantity: Any) -> None:
    """The path leads to the quantity."""
    with pytest.raises(AskError) as raised:
        ask_spec(**{where: [box(), box(quantity)]})
    assert raised.value.path == f"spec.{where}[1].resources.limits[{GPU}]"
    assert str(raised.value).startswith(raised.value.path)


def test_a_malformed_quantity_of_something_else_is_not_our_business() -> None:
    """CPU and memory are kube-scheduler's to read."""
    assert ask_spec(containers=[{"resources": {"limits": {"cpu": "lots", GPU: 1}}}]).need.count == 1


def test_nulls_are_read_as_absent() -> None:
    """Go reads null as if the field were not there, and so do we."""
    nulls: dict[str, Any] = dict.fromkeys(
        ["containers", "initContainers", "priority", "schedulerName", "schedulingGroup", "affinity"]
    )
    of = ask(metadata={"name": None, "labels": None, "annotations": {"a": None}}, spec=nulls)
    assert (of.need.count, of.gang, of.namespace, of.narrowable) == (0, None, "default", True)
    assert ask(metadata=None, spec=None, status=None).need.kind is ResourceKind.NONE
    assert ask_spec(containers=[{"resources": None}]).need.count == 0


def test_identity_and_scheduler_are_kept() -> None:
    """The ask names the pod it is of."""
    of = ask(spec={"schedulerName": "surefoot"})
    assert (of.namespace, of.name, of.uid, of.scheduler) == ("lab", "p", "u-1", "surefoot")
    assert ask(metadata={"generateName": "p-"}).name == "p-"


def test_a_gang_member_is_gang_work_and_any_other_pod_is_single() -> None:
    """The work class follows the detector and nothing else."""
    member = ask_spec(schedulingGroup={"podGroupName": "ranks"}, containers=[box(8)])
    assert member.gang is not None
    assert (member.gang.convention, member.gang.key) == (Convention.NATIVE, "lab/ranks")
    assert member.need.work is WorkClass.GANG
    single = ask_spec(containers=[box(8)])
    assert (single.gang, single.need.work) == (None, WorkClass.SINGLE)


CONTROLLER = {"kind": "Job", "name": "train", "uid": "j-1", "controller": True}


@pytest.mark.parametrize(
    ("references", "owner"),
    [
        ([CONTROLLER], "lab/Job/train"),
        ([{"kind": "Node", "name": "n", "uid": "n-1"}, CONTROLLER], "lab/Job/train"),
        ([{**CONTROLLER, "name": None}], "lab/j-1"),
        ([{**CONTROLLER, "kind": ""}], "lab/j-1"),
        ([{**CONTROLLER, "controller": False}], "lab/p"),
        ([{"controller": True}], "lab/p"),
        ([], "lab/p"),
        (None, "lab/p"),
    ],
    ids=[
        "controller", "not the first", "no name", "no kind", "owned, not controlled", "empty",
        "none", "null",
    ],
)  # fmt: skip
def test_the_owner_of_a_single_pod_is_its_controller_or_itself(
    references: list[dict[str, Any]] | None, owner: str
) -> None:
    """What a pod is one of, by namespace: its rejections count for the next one of it."""
    metadata = {"name": "p", "namespace": "lab", "uid": "u-1", "ownerReferences": references}
    assert ask(metadata=metadata).owner == owner


def test_the_owner_of_a_gang_member_is_its_gang() -> None:
    """Its controller may own other gangs too."""
    metadata = {"name": "p", "namespace": "lab", "ownerReferences": [CONTROLLER]}
    member = ask(metadata=metadata, spec={"schedulingGroup": {"podGroupName": "ranks"}})
    assert member.owner == "lab/ranks"


def test_the_workload_reference_of_1_35_is_read() -> None:
    """Workload, group and replica are one key."""
    ref = {"name": "llm", "podGroup": "ranks", "podGroupReplicaKey": "0"}
    member = ask_spec(workloadRef=ref)
    assert member.gang is not None
    assert member.gang.key == "lab/llm/ranks/0"


def test_only_single_pods_of_low_priority_are_preemptible() -> None:
    """PROBATION takes single pods up to the policy's priority; no priority is 0."""
    assert ask_spec(containers=[box(1)]).need.preemptible
    assert ask_spec(containers=[box(1)], priority=-10).need.preemptible
    assert not ask_spec(containers=[box(1)], priority=1).need.preemptible
    assert not ask_spec(containers=[box(1)], schedulingGroup={"podGroupName": "g"}).need.preemptible
    lenient = Policy(single=SinglePolicy(probation_max_priority=100))
    assert ask(lenient, spec={"priority": 100}).need.preemptible


def annotated(**annotations: str) -> Ask:
    """The ask of a pod with annotations of Surefoot's."""
    return ask(metadata={"annotations": {f"surefoot.dev/{k}": v for k, v in annotations.items()}})


def test_states_are_listed_with_commas_or_blanks_in_any_case() -> None:
    """`allow` and `deny` take names of states."""
    of = annotated(allow="suspect, Degraded", deny=" UNKNOWN,,unmonitored\n")
    assert of.need.allow == {Health.SUSPECT, Health.DEGRADED}
    assert of.need.deny == {Health.UNKNOWN, Health.UNMONITORED}
    assert of.notes == ()


def test_unknown_words_in_an_annotation_are_left_out_and_named() -> None:
    """A typing error never fails a pod, and never hides: known words count, the note says the rest."""
    of = annotated(deny="DEGRADED, DEGRDED, " + "x" * 1000)
    assert of.need.deny == {Health.DEGRADED}
    assert len(of.notes) == 1
    assert "surefoot.dev/deny: 'DEGRDED' and 1 more" in of.notes[0]
    assert len(annotated(allow="x" * 1000).notes[0]) < 200


@pytest.mark.parametrize(
    ("reason", "narrowable"), [("Unschedulable", False), (None, False), ("SchedulingGated", True)]
)
def test_a_pod_that_failed_a_cycle_gets_no_narrow_answer(
    reason: str | None, narrowable: bool
) -> None:
    """PodScheduled=False means a failed cycle, except while it only tells of a scheduling gate."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    assert ask(status={"conditions": [condition]}).narrowable is narrowable


def test_other_conditions_do_not_matter() -> None:
    """Only PodScheduled=False speaks of a failed cycle."""
    conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]
    assert ask(status={"conditions": conditions}).narrowable


@pytest.mark.parametrize(
    ("spec", "narrowable"),
    [
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, True),
        *(
            ({"affinity": {kind: {f"{side}DuringSchedulingIgnoredDuringExecution": [{}]}}}, soft)
            for kind in ("podAffinity", "podAntiAffinity")
            for side, soft in (("preferred", False), ("required", True))
        ),
        (
            {
                "affinity": {
                    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}
                }
            },
            False,
        ),
        (
            {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
            True,
        ),
    ],
)
def test_a_pod_with_soft_preferences_gets_no_narrow_answer(
    spec: dict[str, Any], narrowable: bool
) -> None:
    """Soft spread and preferred affinity are ranked by other plugins, which need all nodes."""
    assert ask(spec=spec).narrowable is narrowable


@pytest.mark.parametrize(
    ("status", "node"),
    [
        (None, None),
        ({}, None),
        ({"nominatedNodeName": ""}, None),
        ({"nominatedNodeName": "a"}, "a"),
    ],
)
def test_a_nomination_is_read_and_none_is_none(status: Any, node: str | None) -> None:
    """Where a gang is planned it says where this pod is to go; Go leaves out an empty one."""
    assert ask(status=status).nominated == node
