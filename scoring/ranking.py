"""The verdicts of a whole fleet for one need, and who comes first: kept ready, and
changed instead of made again.

A `Ranking` is a value. `changed` gives the next one for the nodes that differ, so a node's change
costs one verdict and one copy, not five thousand verdicts.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
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


Pull = Sequence[tuple[Collection[NodeName], float]]
"""What draws a gang's next member to where others are bound: sets of nodes, and what their ranks lose
by the distance. A node loses what the first set says that it is in; the losses grow, and the last
set has all nodes."""


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
            return list(self._leading(names, count, names))
        top = self.ranks[self.order[0]]
        losses: dict[NodeName, float] = {}
        for group, penalty in pull:
            far = len(group) > SMALL and len(losses) >= count
            if far and penalty - top > sorted(losses.values())[count - 1]:
                break
            for name in self._leading(names, count, group):
                losses.setdefault(name, penalty - self.ranks[name])
        best = sorted(losses)
        best.sort(key=losses.__getitem__)
        return best[:count]

    def _leading(
        self, names: Collection[NodeName], count: int, group: Collection[NodeName]
    ) -> Iterable[NodeName]:
        """The best `count` of `names` that fit and lie in `group`, by (-rank, name)."""
        if len(group) > SMALL:
            inside = filter(group.__contains__, self.order)
            return islice(filter(names.__contains__, inside), count)
        fitting = [name for name in group if name in names and name in self.ranks]
        fitting.sort()
        fitting.sort(key=self.ranks.__getitem__, reverse=True)
        return fitting[:count]


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


def reasons(found: Ranking, offered: frozenset[NodeName]) -> Counter[Reason]:
    """How many of `offered` each reason refuses, of the nodes that the ranking has."""
    return Counter(map(found.vetoes.__getitem__, filter(offered.__contains__, found.vetoes)))
