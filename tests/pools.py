"""Fleets of pools, with nodes that fell silent or are excluded; for the tests of the leader's signs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import strategies as own
from machines import dgx_h100
from strategies import NOW_S

from scoring.model import Breaker, Cause, ClusterNode, Fleet, Health, Node, NodeName
from scoring.picture import Picture, picture
from scoring.policy import DEFAULT, Policy

POOL = "NVIDIA-H100-80GB-HBM3"
"""The label that machines give a DGX H100."""


def names(count: int, prefix: str = "n") -> list[NodeName]:
    """So many names."""
    return [NodeName(f"{prefix}{number}") for number in range(count)]


def of_state(name: str, *states: Health, pool: str | None = None) -> Node:
    """A machine whose first GPUs have a cause of these states, one each."""
    causes = {index: (Cause(id="made.up", state=state),) for index, state in enumerate(states)}
    node = dgx_h100(name=name, causes=causes)
    return node if pool is None else replace(node, labels={"nvidia.com/gpu.product": pool})


def cluster_of(
    nodes: Iterable[Node], gpus: int = 8, **more: Mapping[str, str]
) -> dict[NodeName, ClusterNode]:
    """The nodes as the API server has them; `more`: labels of some."""
    return {
        node.name: ClusterNode(
            name=node.name,
            labels=more.get(node.name, {}),
            capacity={"nvidia.com/gpu": gpus},
            allocatable={"nvidia.com/gpu": gpus},
        )
        for node in nodes
    }


def fleet_of(
    *nodes: Node,
    ages_s: Mapping[NodeName, float] | None = None,
    breakers: Iterable[Breaker] = (),
    now_s: float = NOW_S,
) -> Fleet:
    """A fleet of these nodes in a cluster, seen a second ago or `ages_s` ago."""
    ages_s = ages_s or {}
    return replace(
        own.fleet(*nodes, now_s=now_s),
        seen_s={node.name: now_s - ages_s.get(node.name, 1.0) for node in nodes},
        cluster=cluster_of(nodes),
        breakers={each.pool: each for each in breakers},
    )


def seen(fleet: Fleet, policy: Policy = DEFAULT) -> Picture:
    """Its picture."""
    return picture(fleet, policy)
