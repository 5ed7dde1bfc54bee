"""Which nodes a pod may go to by what its spec says."""

from __future__ import annotations

from extender.controller.cluster import shapes
from extender.controller.projection import ProjectionError
from scoring.planning.selection import ANYWHERE, Operator, Requirement, Selection, Term, Toleration

_AFFINITY = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def selection(spec: shapes.Spec) -> Selection:
    """Node selector, required node affinity and tolerations.

    Raises:
        ProjectionError: an operator is none.
    """
    if not (spec.node_selector or spec.affinity or spec.tolerations):
        return ANYWHERE
    return Selection(
        selector=frozenset((spec.node_selector or {}).items()),
        affinity=_required(spec.affinity),
        tolerations=tuple(
            Toleration(
                key=each.key or "",
                operator=each.operator or "Equal",
                value=each.value or "",
                effect=each.effect or "",
            )
            for each in spec.tolerations or ()
        ),
    )


def _required(affinity: shapes.Affinity | None) -> tuple[Term, ...] | None:
    nodes = affinity.node_affinity if affinity else None
    required = nodes.required_during_scheduling_ignored_during_execution if nodes else None
    if required is None:
        return None
    return tuple(
        Term(
            labels=tuple(map(_requirement, term.match_expressions or ())),
            fields=tuple(map(_requirement, term.match_fields or ())),
        )
        for term in required.node_selector_terms or ()
    )


def _requirement(found: shapes.Requirement) -> Requirement:
    try:
        operator = Operator(found.operator)
    except ValueError:
        raise ProjectionError(f"{_AFFINITY}: {found.operator[:32]!r} is no operator") from None
    return Requirement(key=found.key, operator=operator, values=found.values or ())
