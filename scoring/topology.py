"""What a node's links, fabric and labels say: GPUs that lost NVLink, an unusable fabric, and the
domains that the node lies in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from scoring.links import Links, nvlinks
from scoring.model import Cause, Fabric, Health, Node, NodeName, Scope

# --- links worse than peers ----------------------------------------------------------------------


@lru_cache(maxsize=4096)
def missing_links(
    links: Links, models: tuple[str | None, ...] = ()
) -> Mapping[int, tuple[Cause, ...]]:
    """The causes of GPUs with fewer NVLinks than their peers of the same model, by position.

    NVLink wiring is regular: in a healthy node each GPU has as many links as the next, be it through
    a switch, a mesh, a cube or bridged pairs. A GPU with none is at fault only where more than two
    in three have some: one bridge between two of four cards may be all there is.
    Sources: nccl #557, vllm #16336, k8s-device-plugin #436.
    """
    groups: dict[str | None, list[int]] = {}
    for position in range(len(links)):
        model = models[position] if position < len(models) else None
        groups.setdefault(model, []).append(position)
    found: dict[int, tuple[Cause, ...]] = {}
    for group in groups.values():
        totals = {i: sum(map(nvlinks, links.words[i])) for i in group}
        usual = max(totals.values())
        linked = sum(1 for total in totals.values() if total)
        lacking = {
            i: usual - total
            for i, total in totals.items()
            if total < usual and (total or 3 * linked > 2 * len(group))
        }
        found |= {i: (_lacking_cause(totals[i], usual),) for i in _blamed(lacking)}
    return MappingProxyType(found)


def _blamed(lacking: Mapping[int, int]) -> list[int]:
    """Who is at fault: the GPU that lacks most, where that explains what all others lack."""
    if not lacking:
        return []
    most = max(lacking, key=lambda i: lacking[i])
    others = [count for i, count in lacking.items() if i != most]
    if max(others, default=0) < lacking[most] and sum(others) <= lacking[most]:
        return [most]
    return sorted(lacking)


def _lacking_cause(count: int, usual: int) -> Cause:
    return Cause(
        id="nvlink.fewer" if count else "nvlink.missing",
        state=Health.DEGRADED,
        scope=Scope.LINK,
        evidence=f"{count or 'no'} NVLinks to GPUs of the node, peers have {usual}",
    )


# --- the fabric ----------------------------------------------------------------------------------

_BITS: Final = (
    # shift of two bits, what it is, state when it is set
    (0, "degraded_bw", Health.DEGRADED),
    (2, "route_recovery", Health.SUSPECT),
    (4, "route_unhealthy", Health.DEGRADED),
    (6, "access_timeout_recovery", Health.SUSPECT),
)
_FAULT, _NO_FAULT, _UNSUPPORTED = 1, 2, 0
_CONFIGURATION_SHIFT, _CONFIGURATION_FINE = 8, 1
_CONFIGURATION: Final = MappingProxyType(
    {
        2: "wrong system GUID",
        3: "wrong chassis serial number",
        4: "no partition",
        5: "too few NVLinks",
        6: "incompatible GPU firmware",
        7: "invalid location",
    }
)


def fabric_problems(fabric: Fabric | None) -> tuple[Cause, ...]:
    """Why the NVLink fabric of a node is not to be used, or not trusted; nothing for none.

    Links that are up say nothing of the fabric behind them: state, status, mask and summary must all
    be fine. Source: NVML, GPU fabric definitions; a mask other than 0 is normal.
    """
    if fabric is None:
        return ()
    state, status, summary = map(_word, (fabric.state, fabric.status, fabric.health_summary))
    if state == "not_supported":
        return ()
    if state not in (None, "completed"):
        # NVML: the rest is valid only once registration is complete.
        return (_fabric_cause("state", Health.DEGRADED, f"state is {state}"),)
    found = list(_mask_problems(fabric.health_mask or 0))
    if status not in (None, "success"):
        found.append(_fabric_cause("status", Health.DEGRADED, f"status is {status}"))
    if summary not in (None, "healthy", "not_supported"):
        found.append(_fabric_cause("summary", Health.DEGRADED, f"summary is {summary}"))
    return tuple(found)


def _word(text: str | None) -> str | None:
    """`In Progress`, as nvidia-smi prints it, in the spelling of `Fabric`; N/A is not reported."""
    word = (text or "").strip().lower().replace(" ", "_")
    return None if word in ("", "n/a") else word


def _mask_problems(mask: int) -> Iterable[Cause]:
    for shift, what, state in _BITS:
        value = mask >> shift & 0x3
        if value == _FAULT:
            yield _fabric_cause(what, state, f"mask {mask:#x} says {what}")
        elif value not in (_NO_FAULT, _UNSUPPORTED):
            yield _fabric_cause(what, Health.SUSPECT, f"mask {mask:#x} has {value} for {what}")
    configuration = mask >> _CONFIGURATION_SHIFT & 0xF
    if configuration not in (_UNSUPPORTED, _CONFIGURATION_FINE):
        what = _CONFIGURATION.get(configuration, f"code {configuration}")
        yield _fabric_cause("incorrect_configuration", Health.DEGRADED, f"mask {mask:#x}: {what}")


def _fabric_cause(what: str, state: Health, evidence: str) -> Cause:
    return Cause(id=f"fabric.{what}", state=state, scope=Scope.FABRIC, evidence=evidence)


CLIQUE_LABEL: Final = "nvidia.com/gpu.clique"
"""`<cluster uuid>.<clique id>`, by GPU feature discovery."""


def clique(node: Node) -> str | None:
    """The NVLink domain that reaches beyond the node, `<cluster uuid>.<clique id>`; None: none.

    An all-zero uuid is what machines without such a domain report (torchcomms PR 1385): two of them
    share nothing.
    """
    name = node.labels.get(CLIQUE_LABEL)
    fabric = node.fabric
    if not name and fabric and fabric.cluster_uuid and fabric.clique_id is not None:
        name = f"{fabric.cluster_uuid}.{fabric.clique_id}"
    if not name or not name.rpartition(".")[0].strip("0-"):
        return None
    return name


# --- the domain tree -----------------------------------------------------------------------------


class Level(StrEnum):
    """The levels of the tree, narrowest first."""

    ISLAND = "island"
    """GPUs of one node that NVLink joins; two nodes never share one."""
    NODE = "node"
    CLIQUE = "clique"
    RACK = "rack"
    BLOCK = "block"
    ZONE = "zone"


LABELS: Final[Mapping[Level, tuple[str, ...]]] = MappingProxyType(
    {
        Level.CLIQUE: (
            "accelerator.topograph.run/domain",
            "network.topology.nvidia.com/accelerator",  # topograph before 1.0
            "topology.k8s.aws/ultraserver-id",
        ),
        Level.RACK: (
            "fabric.topograph.run/tier-0",
            "network.topology.nvidia.com/leaf",
            "topology.k8s.aws/network-node-layer-3",
            "cloud.google.com/gce-topology-subblock",
            "topology.gke.io/rack",
            "oci.oraclecloud.com/rdma.local_block_id",
            "oci.oraclecloud.com/host.rack_id",
            "node.coreweave.cloud/rack",
            "ib.coreweave.cloud/leafgroup",
        ),
        Level.BLOCK: (
            "fabric.topograph.run/tier-1",
            "network.topology.nvidia.com/spine",
            "topology.k8s.aws/network-node-layer-2",
            "cloud.google.com/gce-topology-block",
            "topology.gke.io/cluster",
            "oci.oraclecloud.com/rdma.network_block_id",
            "oci.oraclecloud.com/host.network_block_id",
            "ib.coreweave.cloud/superpod",
        ),
        Level.ZONE: ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    }
)
"""Which node labels name the domain of a level; the first that a node has counts. NODE is the node's
own name, and `clique` comes before the labels of CLIQUE."""

_STEP_RATIO: Final[Mapping[Level, float]] = MappingProxyType(
    {Level.ZONE: 0.1, Level.BLOCK: 0.15, Level.RACK: 0.25, Level.CLIQUE: 0.3, Level.NODE: 0.2}
)
"""What sharing a level adds to sharing the wider ones; all of them make 1. NVLink between nodes is
the widest gap, the switch of the rack the next. Only the order is grounded, the sizes are choices."""


class Domain(NamedTuple):
    """One domain of the tree; equal for all nodes in it."""

    level: Level
    name: str


def domains(node: Node) -> tuple[Domain, ...]:
    """The domain of `node` at each level from NODE to ZONE, narrowest first.

    A level that no label names takes the name of the next narrower one, so that nodes that share a
    domain share all wider ones. Racks and blocks are told apart by the labels above them, as
    their names may repeat from zone to zone.
    """
    named = {level: _label(node.labels, level) for level in LABELS}
    named[Level.CLIQUE] = clique(node) or named[Level.CLIQUE]
    name = str(node.name)
    found = [Domain(Level.NODE, name)]
    for level in LABELS:
        if named[level] is not None:
            above = (named[wider] for wider in _WIDER[level])
            name = "/".join(filter(None, (*above, named[level])))
        found.append(_shared(level, name))
    return tuple(found)


@lru_cache(maxsize=1 << 16)
def _shared(level: Level, name: str) -> Domain:
    """One object for all nodes of a domain: it is looked up for each of them."""
    return Domain(level, name)


_WIDER: Final[Mapping[Level, tuple[Level, ...]]] = MappingProxyType(
    {
        Level.CLIQUE: (),  # its names are unique in the world
        Level.RACK: (Level.ZONE, Level.BLOCK),
        Level.BLOCK: (Level.ZONE,),
        Level.ZONE: (),
    }
)


def domains_of_unknown(name: NodeName) -> tuple[Domain, ...]:
    """The domains of a node of which only the name is known: it shares them with itself alone."""
    return tuple(Domain(level, name) for level in _STEP_RATIO)


def _label(labels: Mapping[str, str], level: Level) -> str | None:
    """`label=value`, so that values of different labels never meet; None where there is none."""
    return next((f"{key}={labels[key]}" for key in LABELS[level] if labels.get(key)), None)


def step_ratio(domain: Domain) -> float:
    """What sharing this domain adds to the closeness of two nodes: 0..1, 1 over all levels."""
    return _STEP_RATIO[domain.level]
