"""Document shapes into the values of `scoring.model`, checked beyond what types can say.

A fleet of 5,000 nodes holds few different words, causes, label sets and link matrices: equal ones
become one object here, which keeps a replica small.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Final

from extender.config import durations
from extender.store import plans, schema
from extender.store.checks import choice, unique
from extender.store.errors import DocumentError
from scoring import links as words
from scoring.gangs.record import GangPlan
from scoring.links import Links
from scoring.model import (
    EMPTY,
    NO_UNITS,
    Allocation,
    AllocationMode,
    Breaker,
    BreakerState,
    Cause,
    ClusterNode,
    Convention,
    Fabric,
    Gang,
    GangKey,
    Gpu,
    GpuUuid,
    Health,
    Node,
    NodeName,
    Override,
    OverrideVerdict,
    PodUid,
    Rejection,
    Scope,
    SharePolicy,
    Sharing,
    Taint,
    TopologyPolicy,
)
from scoring.policy import DEFAULT

Value = Node | Allocation | Gang | Override | Breaker | Rejection | ClusterNode | GangPlan

PRODUCT_LABEL: Final = "nvidia.com/gpu.product"
DEFAULT_MODE: Final = AllocationMode.NVIDIA
"""Of a node that names none: what most clusters run."""
_PAIR: Final = re.compile(r"GPU(\d{1,4})-GPU(\d{1,4})\Z")


def node(doc: schema.NodeDoc, *, stale_after_s: float = DEFAULT.stale_after_s) -> Node:
    """The node that `doc` describes.

    A GPU whose last full sample was already `stale_after_s` old when its node reported has no data:
    it carries the cause `stale`, UNKNOWN, however fresh its node is.

    Raises:
        DocumentError: GPUs share a uuid or an index, a link or a word is none.
    """
    unique("gpus", "uuid", (gpu.uuid for gpu in doc.gpus))
    unique("gpus", "index", (gpu.index for gpu in doc.gpus))
    labels = _labels(tuple(doc.metadata.labels.items()))
    model = next((gpu.model for gpu in doc.gpus if gpu.model), None) or labels.get(PRODUCT_LABEL)
    return Node(
        name=NodeName(intern(doc.metadata.name)),
        gpus=tuple(_gpu(gpu, f"gpus[{at}]", stale_after_s) for at, gpu in enumerate(doc.gpus)),
        links=_links(tuple(gpu.index for gpu in doc.gpus), tuple(doc.links.items()), model),
        epoch=doc.epoch or 0,
        seq=doc.seq or 0,
        boot_id=doc.boot_id,
        mode=choice(AllocationMode, doc.allocation_mode, "allocationMode", DEFAULT_MODE),
        topology_policy=choice(
            TopologyPolicy,
            doc.topology_manager_policy,
            "topologyManagerPolicy",
            TopologyPolicy.NONE,
        ),
        sharing=None if doc.sharing is None else _sharing(doc.sharing),
        expected=doc.expected,
        fabric=_fabric(doc.fabric) if doc.fabric else None,
        causes=_causes(doc.causes, "causes"),
        labels=labels,
    )


def _sharing(doc: schema.SharingDoc) -> Sharing:
    policy = choice(SharePolicy, doc.policy, "sharing.policy", SharePolicy.DISTRIBUTED)
    return Sharing(replicas=doc.replicas, policy=policy)


def placed(node: Node, there: ClusterNode | None) -> Node:
    """The node with the labels that the cluster has and its own document does not name."""
    if there is None or there.labels.keys() <= node.labels.keys():
        return node
    labels = there.labels
    if node.labels:
        labels = MappingProxyType({**there.labels, **node.labels})
    found = node.links
    if PRODUCT_LABEL not in node.labels and not any(gpu.model for gpu in node.gpus):
        found = words.as_of(found, labels.get(PRODUCT_LABEL))
    return replace(node, labels=labels, links=found)


def allocation(doc: schema.AllocationDoc) -> Allocation:
    """The allocation that `doc` describes.

    Raises:
        DocumentError: it names a GPU twice, or more GPUs than it counts.
    """
    if doc.gpus is not None:
        gpus = frozenset(GpuUuid(uuid) for uuid in doc.gpus)
        if len(gpus) < len(doc.gpus):
            raise DocumentError("names a GPU twice", path="gpus")
        if len(gpus) > doc.count:
            raise DocumentError(f"names {len(gpus)} GPUs, count is {doc.count}", path="gpus")
    else:
        gpus = None
    return Allocation(
        node=NodeName(intern(doc.node)),
        uid=PodUid(doc.uid),
        namespace=intern(doc.namespace),
        pod=doc.pod,
        resource=intern(doc.resource),
        count=doc.count,
        gang=None if doc.gang is None else GangKey(intern(doc.gang)),
        gpus=gpus,
    )


def gang(doc: schema.GangDoc) -> Gang:
    """The gang that `doc` describes.

    Raises:
        DocumentError: its convention is none, or a member stands twice.
    """
    unique("members", "", doc.members)
    return Gang(
        key=GangKey(intern(doc.key)),
        convention=choice(Convention, doc.convention, "convention"),
        uid=doc.uid,
        min=doc.min,
        size=doc.size,
        members=tuple(PodUid(member) for member in doc.members),
    )


def override(doc: schema.OverrideDoc) -> Override:
    """The override that `doc` describes; `until_s` is Unix time here.

    Raises:
        DocumentError: its verdict is none.
    """
    return Override(
        target=doc.target,
        verdict=choice(OverrideVerdict, doc.verdict, "verdict"),
        who=doc.who,
        why=doc.why,
        until_s=_unix_s(doc.until),
    )


def breaker(doc: schema.BreakerDoc) -> Breaker:
    """The breaker that `doc` describes; `until_s` is Unix time here.

    Raises:
        DocumentError: its state is none.
    """
    return Breaker(
        pool=doc.pool,
        state=choice(BreakerState, doc.state, "state"),
        until_s=_unix_s(doc.until),
    )


def rejection(doc: schema.RejectionDoc) -> Rejection:
    """The rejection that `doc` describes; `at_s` is Unix time here."""
    return Rejection(
        node=NodeName(intern(doc.node)),
        owner=intern(doc.owner),
        reason=intern(doc.reason),
        at_s=doc.at.timestamp(),
        name=doc.metadata.name if doc.metadata else "",
        epoch=doc.epoch,
        seq=doc.seq,
    )


def cluster_node(doc: schema.ClusterNodeDoc) -> ClusterNode:
    """The node of the cluster that `doc` describes."""
    return ClusterNode(
        name=NodeName(intern(doc.metadata.name)),
        labels=_interned(doc.metadata.labels.items()),
        unschedulable=doc.unschedulable,
        taints=tuple(_taint(each) for each in doc.taints),
        capacity=_units(tuple(doc.capacity.items())),
        allocatable=_units(tuple(doc.allocatable.items())),
    )


def of(doc: schema.Shape) -> Value:
    """The value of a document of any kind.

    Raises:
        DocumentError: naming the path and what is wrong.
    """
    match doc:
        case schema.NodeDoc():
            return node(doc)
        case schema.AllocationDoc():
            return allocation(doc)
        case schema.GangDoc():
            return gang(doc)
        case schema.OverrideDoc():
            return override(doc)
        case schema.BreakerDoc():
            return breaker(doc)
        case schema.RejectionDoc():
            return rejection(doc)
        case schema.ClusterNodeDoc():
            return cluster_node(doc)
        case schema.PlanDoc():
            return plans.plan(doc)


def identity(value: Value) -> str:
    """What tells a document from others of its kind: its field in the cache."""
    match value:
        case Node() | ClusterNode():
            return value.name
        case Allocation():
            return f"{value.uid}/{value.resource}"
        case Gang():
            return value.key
        case GangPlan():
            return value.gang
        case Override():
            return value.target
        case Breaker():
            return value.pool
        case Rejection():
            name = f"/{value.name}" if value.name else ""
            return f"{value.node}/{value.owner}@{round(value.at_s * 1000)}{name}"


def _gpu(doc: schema.GpuDoc, path: str, stale_after_s: float) -> Gpu:
    causes = _causes(doc.causes, f"{path}.causes")
    if doc.sampled_ago is not None:
        try:
            age_s = durations.parse_s(doc.sampled_ago)
        except ValueError as error:
            raise DocumentError(str(error), path=f"{path}.sampledAgo") from error
        if age_s >= stale_after_s:
            causes += (_stale(doc.sampled_ago),)
    return Gpu(
        uuid=GpuUuid(doc.uuid),
        index=doc.index,
        pci=intern(doc.pci) if doc.pci else None,
        model=intern(doc.model) if doc.model else None,
        numa=None if doc.numa == -1 else doc.numa,
        mig=doc.mig,
        causes=causes,
    )


@lru_cache(maxsize=256)
def _stale(sampled_ago: str) -> Cause:
    return Cause(
        id="stale",
        state=Health.UNKNOWN,
        evidence=f"last full sample {sampled_ago} before the node reported",
    )


def _causes(docs: list[schema.CauseDoc], path: str) -> tuple[Cause, ...]:
    return tuple(_cause(doc, f"{path}[{at}]") for at, doc in enumerate(docs)) if docs else ()


def _cause(doc: schema.CauseDoc, path: str) -> Cause:
    return Cause(
        id=intern(doc.id),
        state=choice(Health, doc.state, f"{path}.state"),
        scope=choice(Scope, doc.scope, f"{path}.scope"),
        first_s=_unix_s(doc.first_seen),
        last_s=_unix_s(doc.last_seen),
        count=doc.count,
        evidence=doc.evidence,
    )


@lru_cache(maxsize=1024)
def _fabric(doc: schema.FabricDoc) -> Fabric:
    return Fabric(
        state=doc.state,
        status=doc.status,
        clique_id=doc.clique_id,
        cluster_uuid=doc.cluster_uuid,
        health_mask=doc.health_mask,
        health_summary=doc.health_summary,
    )


@lru_cache(maxsize=4096)
def _labels(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return _interned(items)


def _interned(items: Collection[tuple[str, str]]) -> Mapping[str, str]:
    return MappingProxyType({intern(k): intern(v) for k, v in items}) if items else EMPTY


@lru_cache(maxsize=1024)
def _units(items: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    return MappingProxyType(dict(items)) if items else NO_UNITS


@lru_cache(maxsize=1024)
def _taint(doc: schema.TaintDoc) -> Taint:
    return Taint(key=doc.key, effect=doc.effect, value=doc.value)


@lru_cache(maxsize=4096)
def _links(
    indices: tuple[int, ...], items: tuple[tuple[str, str], ...], model: str | None
) -> Links:
    """The matrix of `links`. Links of a GPU that is not listed say nothing: it may be lost."""
    pairs: dict[tuple[int, int], str] = {}
    for key, word in items:
        path = f"links.{key}"
        pair = _PAIR.match(key)
        if pair is None:
            raise DocumentError("is no pair, write it like GPU0-GPU1", path=path)
        low, high = int(pair[1]), int(pair[2])
        if low >= high:
            raise DocumentError("the lower index comes first, a pair has two GPUs", path=path)
        if not words.is_word(word):
            allowed = ", ".join(("NV<count>", *words.PCIE_GBPS))
            raise DocumentError(f"{word!r} is no link of topo -m, allowed: {allowed}", path=path)
        pairs[low, high] = word
    return words.links_of(indices, pairs, model)


def _unix_s(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
