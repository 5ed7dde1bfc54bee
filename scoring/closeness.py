"""How close a node is to where a gang's members already run, in the tree of domains.

node < clique < rack < block < zone: the ratio of two nodes is that of the narrowest domain they share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from scoring import topology
from scoring.model import Ask, NodeName
from scoring.picture import Picture


def to_members(picture: Picture, ask: Ask) -> Callable[[NodeName], float] | None:
    """A function that gives a node's mean closeness, 0..1, to the nodes of the gang's bound
    members; None where there is nothing to be close to.

    It costs one pass over the bound nodes, then a few look-ups per node.
    """
    if ask.gang is None:
        return None
    bound = picture.bound.get(ask.gang.key)
    if not bound:
        return None
    shared: Counter[topology.Domain] = Counter()
    for name in bound:
        candidate = picture.candidates.get(name)
        domains = candidate.domains if candidate else topology.domains_of_unknown(name)
        shared.update(domains)
    gains = {domain: topology.step_ratio(domain) * n / len(bound) for domain, n in shared.items()}

    def closeness(name: NodeName) -> float:
        candidate = picture.candidates.get(name)
        if candidate is None:
            return 0.0
        return sum(gains.get(domain, 0.0) for domain in candidate.domains)

    return closeness
