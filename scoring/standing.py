"""What a node is worth to one pod: its rank, less the distance to the gang's bound members, less what
the owner's earlier pods met there.

The ranking is the same for all pods of one need; what differs between pods concerns few nodes, so it
is worked out for those alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from scoring import closeness, rank, rejections
from scoring.closeness import Closeness
from scoring.model import Ask, NodeName
from scoring.picture import Picture
from scoring.policy import Policy
from scoring.ranking import Pull, Ranking


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The nodes of a picture as one pod sees them."""

    near: Closeness | None
    """None: no member of the gang is bound."""
    spoiled: Mapping[NodeName, float]
    """The part of its rank that a node loses for rejecting pods of the same owner."""
    policy: Policy

    def domain_ratio(self, name: NodeName) -> float:
        """Closeness to the gang's bound members; 1 where none is bound."""
        return 1.0 if self.near is None else self.near(name)

    def trust_ratio(self, name: NodeName) -> float:
        """What is left of the rank after the owner's rejections there; 1 where there were none."""
        return 1.0 - self.spoiled.get(name, 0.0)

    def worth(self, found: Ranking, name: NodeName) -> float:
        """The rank of a node that fits, for this pod: 0..1."""
        value = found.ranks[name]
        if self.near is not None:
            value -= rank.domain_penalty(self.near(name), self.policy)
        return value * self.trust_ratio(name)

    def best(self, found: Ranking, offered: Collection[NodeName], count: int) -> list[NodeName]:
        """The best `count` of `offered`, a set, that fit, by (-worth, name)."""
        if not self.spoiled:
            return found.first(offered, count, self._pull(found))
        # Only spoiled nodes fall, so whoever is among the best now was among these before.
        before = found.first(offered, count + len(self.spoiled), self._pull(found))
        before.sort(key=lambda name: (-self.worth(found, name), name))
        return before[:count]

    def _pull(self, found: Ranking) -> Pull | None:
        if self.near is None:
            return None
        return [
            (names, rank.domain_penalty(ratio, self.policy))
            for names, ratio in (*self.near.groups, (found.ranks, 0.0))
        ]


def standing(picture: Picture, ask: Ask) -> Standing:
    """How the picture's nodes stand for `ask`."""
    return Standing(
        near=closeness.to_members(picture, ask),
        spoiled=rejections.by_node(picture.fleet, ask.owner, picture.policy),
        policy=picture.policy,
    )
