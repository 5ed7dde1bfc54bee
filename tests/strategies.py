"""Random fleets, needs and policies for the laws of `scoring`."""

from __future__ import annotations

from hypothesis import strategies as st

from scoring.links import Links, links_of
from scoring.model import (
    Allocation,
    AllocationMode,
    Cause,
    Fleet,
    GangKey,
    Gpu,
    GpuUuid,
    Health,
    Need,
    Node,
    NodeName,
    PodUid,
    ResourceKind,
    Scope,
    SharePolicy,
    Sharing,
    TopologyPolicy,
    WorkClass,
)

NOW_S = 100_000.0
STATES = st.sampled_from(list(Health))
CAUSES = st.builds(
    Cause,
    id=st.sampled_from(
        ["xid.31", "xid.48", "xid.94", "remap.pending", "nvlink.down", "throttle.hw"]
    ),
    state=STATES,
    scope=st.sampled_from([Scope.GPU, Scope.GPU, Scope.GPU, Scope.LINK]),
)


@st.composite
def links(draw: st.DrawFn, count: int) -> Links:
    """A link matrix of `count` GPUs, of any mixture of classes."""
    words = draw(
        st.sampled_from([["NV18"], ["SYS", "PIX"], ["NV1", "NV2", "SYS"], ["NV12", "NODE"]])
    )
    pairs = {
        (i, j): draw(st.sampled_from(words)) for i in range(count) for j in range(i + 1, count)
    }
    return links_of(range(count), pairs, "H100")


SHARINGS = st.builds(Sharing, replicas=st.integers(1, 8), policy=st.sampled_from(list(SharePolicy)))


@st.composite
def nodes(draw: st.DrawFn, name: str = "node-0", most: int = 6) -> Node:
    """A node of 1 to `most` GPUs with causes here and there."""
    count = draw(st.integers(1, most))
    return Node(
        name=NodeName(name),
        gpus=tuple(
            Gpu(
                uuid=GpuUuid(f"GPU-{name}-{i}"),
                index=i,
                causes=tuple(draw(st.lists(CAUSES, max_size=2))) if draw(st.booleans()) else (),
            )
            for i in range(count)
        ),
        links=draw(links(count)),
        mode=draw(st.sampled_from(list(AllocationMode))),
        topology_policy=draw(st.sampled_from(list(TopologyPolicy))),
        sharing=draw(st.none() | SHARINGS),
        labels={"topology.kubernetes.io/zone": draw(st.sampled_from(["a", "b"]))},
    )


@st.composite
def allocations(draw: st.DrawFn, node: Node) -> tuple[Allocation, ...]:
    """Pods that hold some of the node's GPUs, known by name or only by count."""
    held = draw(st.sets(st.sampled_from(node.gpus), max_size=len(node.gpus)))
    named = draw(st.booleans())
    return tuple(
        Allocation(
            node=node.name,
            uid=PodUid(f"{node.name}-pod-{gpu.index}"),
            namespace="default",
            pod=f"pod-{gpu.index}",
            resource="nvidia.com/gpu",
            count=1,
            gang=draw(st.sampled_from([None, GangKey("default/bound")])),
            gpus=frozenset({gpu.uuid}) if named else None,
        )
        for gpu in sorted(held, key=lambda each: each.index)
    )


@st.composite
def fleets(draw: st.DrawFn, most_nodes: int = 5, most_gpus: int = 5) -> Fleet:
    """A fleet of some nodes, some of them stale, some silent, some holding pods."""
    names = [f"node-{i}" for i in range(draw(st.integers(1, most_nodes)))]
    found = {NodeName(name): draw(nodes(name, most_gpus)) for name in names}
    ages_s = {name: draw(st.sampled_from([1.0, 1.0, 1.0, 90.0, 5_000.0, None])) for name in found}
    return fleet(
        *found.values(),
        seen_s={name: NOW_S - age_s for name, age_s in ages_s.items() if age_s is not None},
        allocations={name: draw(allocations(node)) for name, node in found.items()},
    )


def fleet(
    *found: Node,
    seen_s: dict[NodeName, float] | None = None,
    allocations: dict[NodeName, tuple[Allocation, ...]] | None = None,
    generation: int = 1,
    now_s: float = NOW_S,
) -> Fleet:
    """A fleet of these nodes, seen a second ago unless told otherwise."""
    return Fleet(
        generation=generation,
        now_s=now_s,
        nodes={node.name: node for node in found},
        seen_s={node.name: now_s - 1.0 for node in found} if seen_s is None else seen_s,
        allocations=allocations or {},
        gangs={},
        overrides={},
        breakers={},
    )


@st.composite
def needs(draw: st.DrawFn, most: int = 5) -> Need:
    """What a pod of either class may ask for."""
    return Need(
        work=draw(st.sampled_from(list(WorkClass))),
        count=draw(st.integers(1, most)),
        kind=draw(st.sampled_from([ResourceKind.WHOLE, ResourceKind.WHOLE, ResourceKind.SHARED])),
        allow=frozenset(
            draw(st.sets(st.sampled_from([Health.SUSPECT, Health.DEGRADED]), max_size=1))
        ),
        deny=frozenset(
            draw(st.sets(st.sampled_from([Health.SUSPECT, Health.DEGRADED]), max_size=1))
        ),
        preemptible=draw(st.booleans()),
    )
