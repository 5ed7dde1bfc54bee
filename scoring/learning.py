"""Pods that a node failed, as rejections and as exclusions of the planner.

A rejection weighs against its node for a while and for anybody (`rejections`). An exclusion is for one
gang, and stands until the node has reported anew: what failed the gang once fails it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Protocol

from scoring.gang import unqualified
from scoring.model import Fleet, GangKey, NodeName, Rejection
from scoring.planning.values import Exclusion
from scoring.policy import Policy

_SAME_S: Final = 2.0
"""Two failures of one pod that are nearer than this are one, told twice."""


class FailedPod(Protocol):
    """A pod that a node's kubelet refused, or that failed at once there."""

    @property
    def node(self) -> NodeName:
        """Which node."""

    @property
    def owner(self) -> str:
        """As `Ask.owner` says it."""

    @property
    def reason(self) -> str:
        """`UnexpectedAdmissionError`, ..."""

    @property
    def name(self) -> str:
        """The pod's."""

    @property
    def at_s(self) -> float:
        """Unix time."""


def learnt(failed: FailedPod, fleet: Fleet, unix_s: float, policy: Policy) -> Rejection | None:
    """The rejection that a failure is, with the node's document as it is now; None: it is known
    already, or too old to count. Its time is Unix time, as the cache wants it.

    `unix_s`: the fleet's now.

    A new leader hears of old failures again: written anew they would speak against what the node has
    reported since.
    """
    if unix_s - failed.at_s >= policy.rejection.keep_s:
        return None
    at_s = failed.at_s - unix_s + fleet.now_s
    for each in fleet.rejections.get(failed.node, ()):
        same = (each.owner, each.name) == (failed.owner, failed.name)
        if same and abs(each.at_s - at_s) < _SAME_S:
            return None
    node = fleet.nodes.get(failed.node)
    return Rejection(
        node=failed.node,
        owner=failed.owner,
        reason=failed.reason,
        at_s=failed.at_s,
        name=failed.name,
        epoch=node.epoch if node else None,
        seq=node.seq if node else None,
    )


def untold(learnt: Iterable[Rejection], fleet: Fleet) -> tuple[Rejection, ...]:
    """Those that the fleet does not show yet, and that still exclude their node."""
    return tuple(each for each in learnt if _excludes(each, fleet) and not _shown(each, fleet))


def exclusions(
    fleet: Fleet, gangs: Iterable[GangKey], untold: Iterable[Rejection] = ()
) -> frozenset[Exclusion]:
    """The nodes that failed pods of these gangs; `untold`: rejections beside those of the fleet. One
    that does not say how old the node's document was then excludes nothing: nobody could tell when
    that is over.
    """
    known = [*untold, *(each for found in fleet.rejections.values() for each in found)]
    if not known:
        return frozenset()
    keys: dict[str, list[GangKey]] = {}
    for key in gangs:
        keys.setdefault(unqualified(key), []).append(key)
    return frozenset(
        Exclusion(node=each.node, owner=key, epoch=each.epoch, seq=each.seq)
        for each in known
        if each.epoch is not None and each.seq is not None
        for key in keys.get(each.owner, ())
    )


def _excludes(rejection: Rejection, fleet: Fleet) -> bool:
    node = fleet.nodes.get(rejection.node)
    if node is None or rejection.epoch is None or rejection.seq is None:
        return False
    return (node.epoch, node.seq) <= (rejection.epoch, rejection.seq)


def _shown(rejection: Rejection, fleet: Fleet) -> bool:
    """Whether the fleet has it; its time is told on another line there."""
    return any(
        replace(each, at_s=rejection.at_s) == rejection
        for each in fleet.rejections.get(rejection.node, ())
    )
