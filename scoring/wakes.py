"""Which waiting pods a change of the fleet's health helps.

kube-scheduler tries a pod again when the cluster changes, and a GPU that recovers is no change of the
cluster: only a touch of the pod itself brings it back before five minutes are over. Pods that wait
for anything else, or that the change does not help, are nobody's to touch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from scoring.candidate import Candidate
from scoring.model import GangKey, Need, NodeName, PodUid, ResourceKind, WorkClass
from scoring.picture import Picture
from scoring.planning.selection import Selection
from scoring.policy import Policy
from scoring.refusals import foremost
from scoring.verdict import judge

Strangers = frozenset[WorkClass]
"""The kinds of pods that may use nodes without a document."""


class Waiting(Protocol):
    """A pod that kube-scheduler found no node for."""

    @property
    def uid(self) -> PodUid:
        """Its uid."""

    @property
    def need(self) -> Need:
        """What it needs of a node."""

    @property
    def selection(self) -> Selection:
        """Which nodes it may go to by what it says itself."""

    @property
    def message(self) -> str:
        """That of its condition `PodScheduled`: `0/3 nodes are available: 1 a GPU ...`."""

    @property
    def gang(self) -> GangKey | None:
        """The key of its gang."""

    @property
    def priority(self) -> int:
        """The higher, the sooner."""

    @property
    def created_s(self) -> float:
        """Unix time."""


W = TypeVar("W", bound=Waiting)


def touchable(pods: Iterable[W], planned: Collection[GangKey]) -> list[W]:
    """The pods that wait for health. Members of `planned` gangs wait for a plan instead."""
    return [pod for pod in pods if pod.gang not in planned and foremost(pod.message)]


def before_change(
    old: Picture, new: Picture, changed: Iterable[NodeName]
) -> dict[NodeName, Candidate | None]:
    """The nodes that were otherwise in `old`, as they were; None: nothing was known of it."""
    return {
        name: old.candidates.get(name)
        for name in changed
        if old.candidates.get(name) != new.candidates.get(name)
    }


def helped(
    before: Mapping[NodeName, Candidate | None],
    after: Picture,
    pods: Iterable[Waiting],
    strangers: Strangers,
) -> dict[PodUid, bool]:
    """Which `pods` one of the nodes `before` would take now and would not have taken then.

    The value says whether no document changed on any of these nodes: time did, or an operator. The
    webhook's replicas see that some seconds apart.
    """
    nodes: dict[Need, list[NodeName]] = {}
    alike: dict[tuple[Need, Selection], bool | None] = {}
    found = {}
    for pod in pods:
        if pod.need not in nodes:
            nodes[pod.need] = [
                name
                for name, then in sorted(before.items())
                if not _passes(then, pod.need, after.policy, strangers)
                and _passes(after.candidates.get(name), pod.need, after.policy, strangers)
            ]
        key = pod.need, pod.selection
        if key not in alike:
            open_to_it = [name for name in nodes[pod.need] if _may_go(pod, name, after)]
            by_itself = all(_same_document(before[name], after, name) for name in open_to_it)
            alike[key] = by_itself if open_to_it else None
        again = alike[key]
        if again is not None:
            found[pod.uid] = again
    return found


def placeable(after: Picture, pods: Iterable[Waiting], strangers: Strangers) -> frozenset[PodUid]:
    """Which `pods` some node would take now, free GPUs included: for a look without an earlier one."""
    fits: dict[tuple[Need, NodeName], bool] = {}
    alike: dict[tuple[Need, Selection], bool] = {}

    def takes(name: NodeName, need: Need) -> bool:
        if (need, name) not in fits:
            found = after.candidates.get(name)
            fits[need, name] = _units(after, name, need, free=True) >= need.count and _passes(
                found, need, after.policy, strangers
            )
        return fits[need, name]

    found = set()
    for pod in pods:
        key = pod.need, pod.selection
        if key not in alike:
            alike[key] = any(
                takes(name, pod.need) and _may_go(pod, name, after) for name in after.fleet.cluster
            )
        if alike[key]:
            found.add(pod.uid)
    return frozenset(found)


def _passes(found: Candidate | None, need: Need, policy: Policy, strangers: Strangers) -> bool:
    if found is None:
        return need.work in strangers
    return judge(found, need, policy).fits


def _may_go(pod: Waiting, name: NodeName, after: Picture) -> bool:
    """By its selection and by what the node has altogether. What is free now does not matter: pods
    that go are a change of the cluster, and a preemptor needs none. So are taints that go, our own
    too.
    """
    there = after.fleet.cluster.get(name)
    if there is None or pod.selection.obstacle(there) is not None:
        return False
    return _units(after, name, pod.need, free=False) >= pod.need.count


def _units(after: Picture, name: NodeName, need: Need, *, free: bool) -> int:
    """Units of the resource that the node has for pods, or that are `free`."""
    if need.kind is ResourceKind.NONE:
        return need.count
    units = after.fleet.cluster[name].allocatable.get(need.resource, 0)
    if free:
        held = after.fleet.allocations.get(name, ())
        units -= sum(each.count for each in held if each.resource == need.resource)
    return units


def _same_document(then: Candidate | None, after: Picture, name: NodeName) -> bool:
    now = after.candidates.get(name)
    return then is not None and now is not None and then.node == now.node
