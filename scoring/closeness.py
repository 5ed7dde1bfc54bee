"""How close a node is to where a gang's members already run, in the tree of domains.

node < clique < rack < block < zone: the ratio of two nodes is that of the narrowest domain they share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat

from scoring import topology
from scoring.candidate import Candidate
from scoring.model import Ask, NodeName
from scoring.picture import Picture
from scoring.topology import Domain, Level


@dataclass(frozen=True, slots=True)
class Group:
    """The nodes of one domain in which members are bound."""

    names: Collection[NodeName]
    most: float
    """The closeness of a node that lies in no smaller group is this at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """The mean closeness of a node to the nodes of a gang's bound members, 0..1."""

    candidates: Mapping[NodeName, Candidate]
    gains: Mapping[Domain, float]
    """What lying in a domain adds; only domains in which some member is bound."""
    groups: tuple[Group, ...]
    """The smallest first. A node outside of all has closeness 0; of two nodes, one that lies in all
    groups of the other is at least as close.
    """

    def __call__(self, name: NodeName) -> float:
        """Of one node; a few look-ups."""
        candidate = self.candidates.get(name)
        if candidate is None:
            return 0.0
        return sum(map(self.gains.get, candidate.domains, repeat(0.0)))


def to_members(picture: Picture, ask: Ask) -> Closeness | None:
    """The closeness to the bound members of the gang of `ask`; None where none is bound.

    It costs one pass over the bound nodes.
    """
    if ask.gang is None:
        return None
    bound = picture.bound.get(ask.gang.key)
    if not bound:
        return None
    shared: Counter[Domain] = Counter()
    for name in bound:
        candidate = picture.candidates.get(name)
        shared.update(candidate.domains if candidate else topology.domains_of_unknown(name))
    gains = {domain: topology.step_ratio(domain) * n / len(bound) for domain, n in shared.items()}
    return Closeness(
        candidates=picture.candidates, gains=gains, groups=_groups(picture, gains, bound)
    )


def _groups(
    picture: Picture, gains: Mapping[Domain, float], bound: Iterable[NodeName]
) -> tuple[Group, ...]:
    names: dict[Domain, Collection[NodeName]] = {
        domain: picture.domains[domain] for domain in gains if domain in picture.domains
    }
    alone = {Domain(Level.NODE, name): (name,) for name in bound}
    most: dict[Level, float] = {}  # a node lies in one domain of each level
    found = []
    for domain, inside in sorted((names | alone).items(), key=lambda each: -len(each[1])):
        most[domain.level] = max(most.get(domain.level, 0.0), gains[domain])
        found.append(Group(inside, sum(most.values())))
    return tuple(reversed(found))
