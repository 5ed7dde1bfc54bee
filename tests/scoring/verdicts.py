"""Machines with faults and holders, and what becomes of an ask there; for the tests of verdicts."""

from __future__ import annotations

from dataclasses import replace

from strategies import fleet

from scoring import rank
from scoring.candidate import candidate
from scoring.model import (
    Allocation,
    Cause,
    Fleet,
    Health,
    Need,
    Node,
    PodUid,
    Scope,
    WorkClass,
)
from scoring.policy import (
    DEFAULT,
    Policy,
)
from scoring.reasons import Reason
from scoring.verdict import judge

GANG_8 = Need(work=WorkClass.GANG, count=8)
GANG_4 = Need(work=WorkClass.GANG, count=4)
SINGLE_1 = Need(work=WorkClass.SINGLE, count=1)


def cause_of(state: Health, scope: Scope = Scope.GPU, name: str = "made.up") -> Cause:
    """A cause with this state."""
    return Cause(id=name, state=state, scope=scope)


def sick(node: Node, position: int, *causes: Cause) -> Node:
    """`node` with these causes on one GPU."""
    gpus = list(node.gpus)
    gpus[position] = replace(gpus[position], causes=causes)
    return replace(node, gpus=tuple(gpus))


def holding(node: Node, *positions: int, named: bool = True) -> tuple[Allocation, ...]:
    """A pod for each of these GPUs; not `named`: only the counts are known."""
    return tuple(
        Allocation(
            node=node.name,
            uid=PodUid(f"pod-{position}"),
            namespace="default",
            pod=f"pod-{position}",
            resource="nvidia.com/gpu",
            count=1,
            gpus=frozenset({node.gpus[position].uuid}) if named else None,
        )
        for position in positions
    )


def reason_of(
    node: Node,
    need: Need,
    *,
    held: tuple[Allocation, ...] = (),
    policy: Policy = DEFAULT,
    of: Fleet | None = None,
    gone: tuple[str, ...] = (),
) -> Reason | None:
    """Why the node is refused; None: the pod may go there."""
    found = of or fleet(node)
    found = replace(found, allocations={node.name: held})
    return judge(candidate(found, node, policy, gone=gone), need, policy).reason


def rank_of(node: Node, need: Need, held: tuple[Allocation, ...] = ()) -> float:
    """The rank of a node that fits."""
    found = replace(fleet(node), allocations={node.name: held})
    ready = candidate(found, node, DEFAULT)
    return rank.rank(rank.parts(ready, need, judge(ready, need, DEFAULT), DEFAULT), DEFAULT)
