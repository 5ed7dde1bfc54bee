"""Which gang does a pod belong to? One table of the conventions in use, first match wins.

A gang is only ever read from one convention: numbers of another one are never mixed in. Where the
pod names a group whose size stands elsewhere, or in no readable form, the minimum is `None`, which
means unknown and never 1. A plain Job, a queue or an application is no gang.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, TypeAlias

from scoring.model import EMPTY, Convention, GangKey, GangRef

LONGEST_NAME: Final = 448
"""Characters: with its namespace a gang's key has 512 at most, as in the cache's documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRef:
    """`spec.workloadRef` of Kubernetes 1.35, gone in 1.36. Each replica of a group is a gang."""

    name: str
    pod_group: str
    replica_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """All of a pod that can make it a member of a gang."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    annotations: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    scheduling_group: str | None = None
    """`spec.schedulingGroup.podGroupName` (KEP-4671)."""
    workload_ref: WorkloadRef | None = None


Text: TypeAlias = Callable[[PodFacts], str | None]
Count: TypeAlias = Callable[[PodFacts], int | None]
Condition: TypeAlias = Callable[[PodFacts], bool]

MOST_MEMBERS: Final = 10**9
"""A larger number of members is none."""
_COUNT: Final = re.compile(r"\+?0*([1-9][0-9]{0,8})", re.ASCII)


def count_of(text: str | None) -> int | None:
    """The positive number of members that `text` states; None where it states none."""
    match = _COUNT.fullmatch(text) if text else None
    return int(match[1]) if match else None


def _label(key: str) -> Text:
    return lambda pod: pod.labels.get(key)


def _annotation(key: str) -> Text:
    return lambda pod: pod.annotations.get(key)


def _count(text: Text) -> Count:
    return lambda pod: count_of(text(pod))


def _unknown(_: PodFacts) -> None:
    return None


def _always(_: PodFacts) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one convention is read from a pod."""

    convention: Convention
    names: tuple[Text, ...]
    """Where the name of the gang may stand; the first that is not blank counts."""
    min: Count = _unknown
    size: Count = _unknown
    uid: Text = _unknown
    applies: Condition = _always
    """What must hold besides a name."""


def _workload_group(pod: PodFacts) -> str | None:
    ref = pod.workload_ref
    if ref is None or not ref.name:
        return None
    return "/".join(part for part in (ref.name, ref.pod_group, ref.replica_key) if part)


def _koordinator_size(pod: PodFacts) -> int | None:
    prefix = "gang.scheduling.koordinator.sh/"
    total = count_of(pod.annotations.get(prefix + "total-number"))
    return total or count_of(pod.annotations.get(prefix + "min-available"))


def _kueue_job_kind(pod: PodFacts) -> bool:
    """Whether a Kueue workload has its pods from a Job or the like: `managed` marks plain pods,
    which are a gang only under a pod group.
    """
    single = pod.labels.get("kueue.x-k8s.io/managed") == "true"
    return bool(pod.labels.get("kueue.x-k8s.io/podset")) and not single


def _yunikorn_task_group(pod: PodFacts) -> str | None:
    key = "yunikorn.apache.org/task-group-name"
    return pod.annotations.get(key) or pod.labels.get(key)


def _yunikorn_min(pod: PodFacts) -> int | None:
    """Members of all task groups: YuniKorn starts an application when each group has its minimum."""
    try:
        groups: Any = json.loads(pod.annotations.get("yunikorn.apache.org/task-groups", "null"))
        minimums = [group["minMember"] for group in groups]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if not minimums or not all(type(each) is int and 0 <= each < MOST_MEMBERS for each in minimums):
        return None
    return sum(minimums) or None


def _ray_gang(pod: PodFacts) -> bool:
    """KubeRay takes the bare label as yes; some of its schedulers ask for the word `true`."""
    flag = pod.labels.get("ray.io/gang-scheduling-enabled")
    return flag is not None and flag.lower() != "false"


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        convention=Convention.SUREFOOT,
        names=(_label("surefoot.dev/gang"),),
        min=_count(_label("surefoot.dev/gang-size")),
        size=_count(_label("surefoot.dev/gang-size")),
    ),
    Rule(  # Kubernetes 1.36 and later, KEP-4671: the minimum stands in the PodGroup
        convention=Convention.NATIVE,
        names=(lambda pod: pod.scheduling_group,),
    ),
    Rule(convention=Convention.WORKLOAD, names=(_workload_group,)),
    Rule(  # kubernetes-sigs/scheduler-plugins
        convention=Convention.COSCHEDULING,
        names=(_label("scheduling.x-k8s.io/pod-group"),),
    ),
    Rule(  # its first labels, which Koordinator still reads
        convention=Convention.COSCHEDULING_LEGACY,
        names=(_label("pod-group.scheduling.sigs.k8s.io/name"),),
        min=_count(_label("pod-group.scheduling.sigs.k8s.io/min-available")),
    ),
    Rule(
        convention=Convention.KOORDINATOR,
        names=(_annotation("gang.scheduling.koordinator.sh/name"),),
        min=_count(_annotation("gang.scheduling.koordinator.sh/min-available")),
        size=_koordinator_size,
    ),
    Rule(
        convention=Convention.VOLCANO,
        names=(
            _annotation("scheduling.k8s.io/group-name"),
            _annotation("scheduling.volcano.sh/group-name"),
            _label("volcano.sh/job-name"),
        ),
        min=_count(_annotation("scheduling.volcano.sh/group-min-member")),
    ),
    Rule(convention=Convention.KAI, names=(_annotation("pod-group-name"),)),
    Rule(
        convention=Convention.KUEUE,
        names=(_label("kueue.x-k8s.io/pod-group-name"),),
        min=_count(_annotation("kueue.x-k8s.io/pod-group-total-count")),
        size=_count(_annotation("kueue.x-k8s.io/pod-group-total-count")),
    ),
    Rule(
        convention=Convention.KUEUE_WORKLOAD,
        names=(_annotation("kueue.x-k8s.io/workload"),),
        applies=_kueue_job_kind,
    ),
    Rule(  # LeaderWorkerSet: one leader with its workers
        convention=Convention.LWS,
        names=(_label("leaderworkerset.sigs.k8s.io/group-key"),),
        min=_count(_annotation("leaderworkerset.sigs.k8s.io/size")),
        size=_count(_annotation("leaderworkerset.sigs.k8s.io/size")),
    ),
    Rule(  # by uid where it is known: names are used again
        convention=Convention.JOBSET,
        names=(
            _label("jobset.sigs.k8s.io/jobset-uid"),
            _label("jobset.sigs.k8s.io/jobset-name"),
        ),
        uid=_label("jobset.sigs.k8s.io/jobset-uid"),
    ),
    Rule(convention=Convention.GROVE, names=(_label("grove.io/podgang"),)),
    Rule(
        convention=Convention.YUNIKORN,
        names=(
            _label("yunikorn.apache.org/app-id"),
            _annotation("yunikorn.apache.org/app-id"),
            _label("applicationId"),
        ),
        min=_yunikorn_min,
        applies=lambda pod: bool(_yunikorn_task_group(pod)),
    ),
    Rule(
        convention=Convention.RAY,
        names=(_label("ray.io/cluster"),),
        applies=_ray_gang,
    ),
)
"""One rule a convention, in the order in which they are tried: Surefoot's own label, what
Kubernetes has natively, what names a group for a scheduler, what a workload operator writes."""


def detect(pod: PodFacts) -> GangRef | None:
    """The gang of `pod`, or None. A gang that is known to have one member is none."""
    for rule in RULES:
        name = next((text for read in rule.names if (text := read(pod)) and text.strip()), None)
        if name is not None and rule.applies(pod):
            return _gang(rule, pod, name)
    return None


def _gang(rule: Rule, pod: PodFacts, name: str) -> GangRef | None:
    minimum, size = rule.min(pod), rule.size(pod)
    if minimum == 1 or size == 1:
        return None
    return GangRef(
        key=GangKey(f"{pod.namespace}/{_bounded(name)}"),
        convention=rule.convention,
        min=minimum,
        size=size,
        uid=rule.uid(pod) or None,
    )


def qualified(key: GangKey, convention: Convention) -> GangKey:
    """The key of a gang whose own another convention uses, too: `namespace/name~convention`."""
    return GangKey(f"{key}~{convention}")


def unqualified(key: GangKey) -> GangKey:
    """The key as pods of the gang have it, whether it is `qualified` or not."""
    name, _, convention = key.rpartition("~")
    return GangKey(name) if name and convention in _CONVENTIONS else key


_CONVENTIONS: Final = frozenset(each.value for each in Convention)


def _bounded(name: str) -> str:
    """The name, or where it cannot be one its beginning and what tells it from others.

    Annotations may hold 256 KiB, and each decision about the pod is kept with the key of its gang.
    """
    if len(name) <= LONGEST_NAME and all(map(_is_plain, name)):
        return name
    start = "".join(each if _is_plain(each) else "_" for each in name[:64])
    return f"{start}~{sha256(name.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _is_plain(character: str) -> bool:
    """Whether a document can have it in a name. All that objects of Kubernetes are called can stand."""
    return character.isprintable() and not character.isspace()
