"""The verdicts of a whole fleet for one need, and who comes first: kept ready, and
changed instead of made again.

A `Ranking` is a value. `changed` gives the next one for the nodes that differ, so a node's change
costs one verdict and one copy, not five thousand verdicts.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from scoring import rank
from scoring.candidate import Candidate
from scoring.model import Need, NodeName
from scoring.policy import Policy
from scoring.reasons import Reason
from scoring.verdict import judge

SMALL: Final = 256
"""A group of so many nodes is looked through rather than looked for in the whole order."""


_MARGIN: Final = 1e-9
"""More than sums of a few ratios can be off by."""


@dataclass(frozen=True, slots=True)
class Pull:
    """What draws a gang's next member to where others are bound."""

    penalty: Callable[[NodeName], float]
    """What the rank of a node loses by its distance."""
    groups: Sequence[tuple[Collection[NodeName], float]]
    """Sets of nodes, small ones first and all nodes last, each with what a node loses at least that
    lies in no smaller one. Of two nodes, one that lies in all sets of the other loses no more.
    """


@dataclass(frozen=True, slots=True)
class Ranking:
    """Verdicts on every node of a fleet for one need."""

    need: Need
    ranks: Mapping[NodeName, float]
    """Of the nodes that fit, with no regard to where the gang's members are bound."""
    vetoes: Mapping[NodeName, Reason]
    """Of the nodes that do not."""
    order: tuple[NodeName, ...]
    """The nodes that fit by (-rank, name), best first."""

    def first(
        self, names: Collection[NodeName], count: int, pull: Pull | None = None
    ) -> list[NodeName]:
        """The best `count` of `names`, a set, that fit, by (-rank, name).

        Where the gang has bound members, `pull` lowers the ranks by the distance to them.
        """
        if pull is None or not self.order:
            return list(islice(filter(names.__contains__, self.order), count))
        top = self.ranks[self.order[0]]
        losses: dict[NodeName, float] = {}
        for group, least in pull.groups:
            if len(group) > SMALL and len(losses) >= count:
                last = heapq.nsmallest(count, losses.values())[-1]
                if least - top > last + _MARGIN:
                    break
            for name in self._leading(names, count, group):
                losses[name] = pull.penalty(name) - self.ranks[name]
        return heapq.nsmallest(count, losses, key=lambda name: (losses[name], name))

    def _leading(
        self, names: Collection[NodeName], count: int, group: Collection[NodeName]
    ) -> Iterable[NodeName]:
        """The best `count` of `names` that fit and lie in `group`, by (-rank, name): those behind
        them are behind them with any pull.
        """
        if len(group) > SMALL:
            inside = filter(group.__contains__, self.order)
            return islice(filter(names.__contains__, inside), count)
        fitting = [name for name in group if name in names and name in self.ranks]
        return fitting if len(fitting) <= count else heapq.nsmallest(count, fitting, self._place)

    def _place(self, name: NodeName) -> tuple[float, NodeName]:
        return -self.ranks[name], name


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

    def place(name: NodeName) -> tuple[float, NodeName]:
        return -ranks[name], name

    names = list(names)
    bulk = len(names) > len(order) // 8
    for name in names:
        vetoes.pop(name, None)
        if name in ranks:
            if not bulk:
                del order[bisect_left(order, place(name), key=place)]
            del ranks[name]
        candidate = candidates.get(name)
        if candidate is None:
            continue
        judgement = judge(candidate, old.need, policy)
        if judgement.reason is not None:
            vetoes[name] = judgement.reason
            continue
        ranks[name] = rank.rank(rank.parts(candidate, old.need, judgement, policy), policy)
        if not bulk:
            insort(order, name, key=place)
    if bulk:
        order = sorted(ranks, key=place)
    return Ranking(old.need, ranks, vetoes, tuple(order))


def reasons(
    found: Ranking, offered: frozenset[NodeName], unreported: Reason | None
) -> Counter[Reason]:
    """How many of `offered` each reason refuses; nodes without a document count as `unreported`."""
    count = Counter(reason for name, reason in found.vetoes.items() if name in offered)
    if unreported is not None:
        strangers = offered.difference(found.ranks).difference(found.vetoes)
        if strangers:
            count[unreported] += len(strangers)
    return count
