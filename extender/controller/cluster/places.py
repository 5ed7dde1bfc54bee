"""Which member of its gang a pod is, and how near to each other the members shall be: tables of the
labels and annotations that say so. The first row that a pod fits counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from scoring.gang import PodFacts
from scoring.planning.values import NO_TOPOLOGY, Span, Topology
from scoring.topology import CLIQUE_LABEL, LABELS, Level

_JOBSET_JOBS: Final = "jobset.sigs.k8s.io/global-replicas"


def _one_job(pod: PodFacts) -> bool:
    """Whether the pod is of no JobSet, or of one that has a single Job."""
    return (pod.labels.get(_JOBSET_JOBS) or pod.annotations.get(_JOBSET_JOBS, "1")) == "1"


def _always(_: PodFacts) -> bool:
    return True


# --- which member --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Index:
    key: str
    """Of a label or an annotation."""
    applies: Callable[[PodFacts], bool] = _always


INDICES: Final = (
    _Index("leaderworkerset.sigs.k8s.io/worker-index"),  # before its StatefulSet's own
    # Each Job of a JobSet counts from 0: where there are several the names tell the order.
    _Index("batch.kubernetes.io/job-completion-index", _one_job),
    _Index("volcano.sh/task-index"),
    _Index("training.kubeflow.org/replica-index"),
    _Index("apps.kubernetes.io/pod-index"),  # StatefulSet
)


def index_of(pod: PodFacts) -> int | None:
    """The pod's number among the members of its gang; None: nobody says."""
    for row in INDICES:
        text = pod.labels.get(row.key) or pod.annotations.get(row.key)
        if text and row.applies(pod):
            return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
    return None


# --- how near ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nearness:
    """Annotations whose value is a span."""

    required: str
    preferred: str = ""
    applies: Callable[[PodFacts], bool] = _always


TOPOLOGIES: Final = (
    _Nearness(
        required="surefoot.dev/topology-required", preferred="surefoot.dev/topology-preferred"
    ),
    # `podset-unconstrained-topology` asks nothing.
    _Nearness(
        required="kueue.x-k8s.io/podset-required-topology",
        preferred="kueue.x-k8s.io/podset-preferred-topology",
    ),
    _Nearness(required="leaderworkerset.sigs.k8s.io/exclusive-topology"),
    # One domain for each Job: only of a JobSet with a single Job is that one for the gang.
    _Nearness(required="alpha.jobset.sigs.k8s.io/exclusive-topology", applies=_one_job),
)

_LEVELS: Final[Mapping[str, Level]] = MappingProxyType(
    {
        **{level.value: level for level in Level},
        **{label: level for level, labels in LABELS.items() for label in labels},
        CLIQUE_LABEL: Level.CLIQUE,
        "kubernetes.io/hostname": Level.NODE,
    }
)


LONGEST_LABEL: Final = 400
"""Characters that are kept of a label. Its key has 317 at most: what is cut is on no node either."""


def span(text: str | None) -> Span | None:
    """A level by its word or by one of its labels, else a node label; None: nothing is said."""
    word = (text or "").strip()[:LONGEST_LABEL]
    return _LEVELS.get(word) or _LEVELS.get(word.lower()) or word or None


def topology_of(pod: PodFacts) -> Topology:
    """How near to each other the pod wants its gang."""
    for row in TOPOLOGIES:
        required = span(pod.annotations.get(row.required))
        preferred = span(pod.annotations.get(row.preferred))
        if (required or preferred) and row.applies(pod):
            return Topology(required=required, preferred=preferred)
    return NO_TOPOLOGY
