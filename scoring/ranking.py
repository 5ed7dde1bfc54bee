"""The verdicts of a whole fleet for one need, and who comes first: kept ready, and
changed instead of made again.

A `Ranking` is a value. `changed` gives the next one for the nodes that differ, so a node's change
costs one verdict and one copy, not five thousand verdicts.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from scoring import rank
from scoring.candidate import Candidate
from scoring.model import Need, NodeName
from scoring.policy import Policy
from scoring.reasons import Reason
from scoring.verdict import judge

Penalty = Callable[[NodeName], float]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Verdicts on every node of a fleet for one need."""

    need: Need
    ranks: Mapping[NodeName, float]
    """Of the nodes that fit, with no regard to where the gang's members are bound."""
    vetoes: Mapping[NodeName, Reason]
    """Of the nodes that do not."""
    order: tuple[tuple[float, NodeName], ...]
    """(-rank, name) of the nodes that fit, best first."""

    def first(
        self, names: Collection[NodeName], count: int, penalty: Penalty | None = None
    ) -> list[NodeName]:
        """The best `count` of `names` that fit, by (-rank, name).

        `penalty` is what a node's rank loses by its distance to the gang's bound members; None
        where no member is bound, so that the order stands as it is. O(1) look-ups per name then.
        """
        if penalty is None:
            fitting = (name for _, name in self.order if name in names)
            return list(islice(fitting, count))
        ranks = self.ranks
        losses = ((penalty(name) - ranks[name], name) for name in names if name in ranks)
        return [name for _, name in heapq.nsmallest(count, losses)]


def ranking(candidates: Mapping[NodeName, Candidate], need: Need, policy: Policy) -> Ranking:
    """The verdicts of all `candidates` for `need`."""
    empty = Ranking(need, {}, {}, ())
    return changed(empty, candidates, candidates, policy)


def changed(
    old: Ranking,
    candidates: Mapping[NodeName, Candidate],
    names: Iterable[NodeName],
    policy: Policy,
) -> Ranking:
    """`old` with the nodes `names` judged anew; one that `candidates` lacks is gone."""
    ranks, vetoes, order = dict(old.ranks), dict(old.vetoes), list(old.order)
    names = list(names)
    bulk = len(names) > len(order) // 8
    for name in names:
        vetoes.pop(name, None)
        before = ranks.pop(name, None)
        if before is not None and not bulk:
            del order[bisect_left(order, (-before, name))]
        candidate = candidates.get(name)
        if candidate is None:
            continue
        judgement = judge(candidate, old.need, policy)
        if judgement.reason is not None:
            vetoes[name] = judgement.reason
            continue
        ranks[name] = rank.rank(rank.parts(candidate, old.need, judgement, policy), policy)
        if not bulk:
            insort(order, (-ranks[name], name))
    if bulk:
        order = sorted((-value, name) for name, value in ranks.items())
    return Ranking(old.need, ranks, vetoes, tuple(order))


def reasons(
    found: Ranking, names: Iterable[NodeName], unreported: Reason | None
) -> Counter[Reason]:
    """How many of `names` each reason refuses; nodes without a document count as `unreported`."""
    count: Counter[Reason] = Counter()
    for name in names:
        reason = found.vetoes.get(name)
        if reason is None and name not in found.ranks:
            reason = unreported
        if reason is not None:
            count[reason] += 1
    return count
