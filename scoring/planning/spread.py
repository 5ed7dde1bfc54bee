"""What a plan costs, as one number that adds up over the nodes and compares as `Objective` does.

Each part has its own bits, the first part the highest, so that sums and comparisons of whole costs
are those of integers. Adding the same to both sides never changes an order, which is what lets the
best plan of a domain be put together from the best ones of the domains within it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from scoring.planning.hosts import Host
from scoring.planning.outcome import Objective
from scoring.planning.turns import sick_gpus, stranded_gpus
from scoring.topology import Domain, Level

WIDEST_FIRST: Final = (Level.ZONE, Level.BLOCK, Level.RACK, Level.CLIQUE, Level.NODE)

_BITS: Final = 24
"""Of each part: 16 million nodes or GPUs."""
_SUSPECT: Final = _BITS
"""Where the number of suspect GPUs begins; stranded ones begin at 0."""
UNIT: Final[Mapping[Level, int]] = MappingProxyType(
    {level: 1 << (6 - place) * _BITS for place, level in enumerate(WIDEST_FIRST)}
)
"""What one more domain of each level costs."""


def opening(levels: Sequence[Level]) -> int:
    """What the first member in one domain of each of these levels costs."""
    return sum(UNIT[level] for level in levels)


def on_host(host: Host, gpus: int) -> int:
    """What it costs to take so many whole GPUs of a host, but for opening it."""
    return (sick_gpus(host, gpus) << _SUSPECT) + stranded_gpus(host, gpus)


def of_clique(total_gpus: int, gpus: int) -> int:
    """What it costs to take so many GPUs of a clique that was whole and healthy: those that are left."""
    return total_gpus - gpus if 0 < gpus < total_gpus else 0


def objective(paths: Sequence[Sequence[Domain]], costs: int) -> Objective:
    """The objective of members on nodes with these `paths` (widest first, any number of times each),
    which cost `costs` beside opening them.
    """
    spread = [
        len({tuple(path[: place + 1]) for path in paths}) for place in range(len(WIDEST_FIRST))
    ]
    part = (1 << _BITS) - 1
    return Objective(
        zones=spread[0],
        blocks=spread[1],
        racks=spread[2],
        cliques=spread[3],
        nodes=spread[4],
        suspect_gpus=costs >> _SUSPECT & part,
        stranded_gpus=costs & part,
    )
