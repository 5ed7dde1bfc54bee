"""Which nodes a pod may go to by what it says itself: node selector, required node affinity, tolerations.

As kube-scheduler reads them (k8s.io/component-helpers nodeaffinity, k8s.io/api core/v1 toleration).
Pod affinity, topology spread, volumes and claims (DRA) are not modelled: kube-scheduler refuses what
they forbid, and the gang is planned again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scoring.model import ClusterNode, Taint
from scoring.planning.obstacles import Obstacle

NAME_FIELD: Final = "metadata.name"
"""The one field of a node that affinity may speak of."""

_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""Who tolerates this may use a cordoned node."""
_KEEPS_OUT: Final = frozenset({"NoSchedule", "NoExecute"})
_INT64: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


class Operator(StrEnum):
    """How a requirement compares a label with its values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels meets it. An absent label is not in any set, and neither
        above nor below a number.
        """
        found = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return found in self.values
            case Operator.NOT_IN:
                return found not in self.values
            case Operator.EXISTS:
                return found is not None
            case Operator.DOES_NOT_EXIST:
                return found is None
            case Operator.GT | Operator.LT:
                return self._compares(found)

    def _compares(self, found: str | None) -> bool:
        """Both sides must be integers, else nothing is met."""
        if found is None or len(self.values) != 1:
            return False
        if not (_INT64.fullmatch(found) and _INT64.fullmatch(self.values[0])):
            return False
        here, bound = int(found), int(self.values[0])
        return here > bound if self.operator is Operator.GT else here < bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Conditions that must all hold. A term without any matches no node."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def met_by(self, node: ClusterNode) -> bool:
        """Whether `node` meets every condition."""
        if not self.labels and not self.fields:
            return False
        fields = {NAME_FIELD: str(node.name)}
        return all(each.met_by(node.labels) for each in self.labels) and all(
            each.met_by(fields) for each in self.fields
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A taint that a pod does not mind. Empty key: any; empty effect: any."""

    key: str = ""
    operator: str = "Equal"
    """`Equal` or `Exists`; whatever else there may be tolerates nothing here."""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether the pod may be where this taint is."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator == "Equal" and bool(self.key) and self.value == taint.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a pod says of the nodes that it may go to."""

    selector: frozenset[tuple[str, str]] = frozenset()
    """`spec.nodeSelector`: all of these labels."""
    affinity: tuple[Term, ...] | None = None
    """`requiredDuringSchedulingIgnoredDuringExecution`: one of these terms. None: not asked; no term
    at all is met by no node."""
    tolerations: tuple[Toleration, ...] = ()

    def obstacle(self, node: ClusterNode) -> Obstacle | None:
        """What keeps such a pod off `node`; None: nothing of this."""
        if node.unschedulable and not self._tolerates(_CORDON):
            return Obstacle.CORDONED
        for taint in node.taints:
            if taint == _CORDON and node.unschedulable:
                continue
            if taint.effect in _KEEPS_OUT and not self._tolerates(taint):
                return Obstacle.TAINTED
        if any(node.labels.get(key) != value for key, value in self.selector):
            return Obstacle.NOT_SELECTED
        if self.affinity is not None and not any(term.met_by(node) for term in self.affinity):
            return Obstacle.NOT_SELECTED
        return None

    def _tolerates(self, taint: Taint) -> bool:
        return any(each.tolerates(taint) for each in self.tolerations)


ANYWHERE: Final = Selection()
