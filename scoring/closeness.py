"""How close a node is to where a gang's members already run, in the tree of domains.

node < clique < rack < block < zone: the ratio of two nodes is that of the narrowest domain they share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from scoring import topology
from scoring.candidate import Candidate
from scoring.model import Ask, NodeName
from scoring.picture import Picture
from scoring.topology import Domain, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """The mean closeness of a node to the nodes of a gang's bound members, 0..1."""

    candidates: Mapping[NodeName, Candidate]
    ratios: Mapping[Domain, float]
    """By the narrowest domain that a node shares with a member."""
    groups: Sequence[tuple[Collection[NodeName], float]]
    """The same with the nodes of each domain, the closest first. Others have closeness 0."""

    def __call__(self, name: NodeName) -> float:
        """Of one node; a few look-ups."""
        candidate = self.candidates.get(name)
        if candidate is None:
            return 0.0
        return max(self.ratios.get(domain, 0.0) for domain in candidate.domains)


def to_members(picture: Picture, ask: Ask) -> Closeness | None:
    """The closeness to the bound members of the gang of `ask`; None where none is bound.

    It costs two passes over the bound nodes.
    """
    if ask.gang is None:
        return None
    bound = picture.bound.get(ask.gang.key)
    if not bound:
        return None
    around = [_domains(picture, name) for name in bound]
    members = Counter(domain for domains in around for domain in domains)
    ratios: dict[Domain, float] = {}
    for domains in around:
        ratio = 0.0
        for domain in reversed(domains):  # who shares one shares the wider ones too
            ratio += topology.step_ratio(domain) * members[domain] / len(bound)
            ratios[domain] = max(ratio, ratios.get(domain, 0.0))
    groups = [(_nodes(picture, domain), ratio) for domain, ratio in ratios.items()]
    groups.sort(key=lambda group: -group[1])
    return Closeness(candidates=picture.candidates, ratios=ratios, groups=groups)


def _domains(picture: Picture, name: NodeName) -> tuple[Domain, ...]:
    candidate = picture.candidates.get(name)
    return candidate.domains if candidate else topology.domains_of_unknown(name)


def _nodes(picture: Picture, domain: Domain) -> Collection[NodeName]:
    if domain.level is Level.NODE:
        return (NodeName(domain.name),)
    return picture.domains.get(domain, ())
