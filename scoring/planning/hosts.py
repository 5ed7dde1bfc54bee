"""One node with what is left of it while gangs are planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scoring.candidate import Candidate
from scoring.model import ClusterNode, Fleet, NodeName, ResourceKind
from scoring.picture import Picture
from scoring.planning.obstacles import Obstacle
from scoring.planning.values import Amounts, HostPort, Room, Shape, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A node, and what nobody holds of it yet."""

    cluster: ClusterNode
    candidate: Candidate | None
    """None: it reports no GPU health."""
    units: Mapping[str, int]
    """Of each GPU resource: what kube-scheduler would still give out."""
    unnamed: int = 0
    """Whole GPUs that pods hold without a word on which: nominated and planned ones."""
    left: Amounts
    pods: int
    """How many more it takes."""
    ports: frozenset[HostPort]

    @property
    def name(self) -> NodeName:
        """The node's."""
        return self.cluster.name

    @property
    def whole(self) -> bool:
        """Whether all its GPUs are free and healthy, and pods may come."""
        found = self.candidate
        return (
            found is not None
            and bool(found.node.gpus)
            and not (found.held or found.nameless or self.unnamed or found.denied or found.mig)
            and not (self.cluster.unschedulable or any(found.together))
        )

    def free_gpus(self) -> int:
        """Whole GPUs that nobody holds."""
        if self.candidate is None:
            return 0
        free = self.candidate.free & self.candidate.of_kind(ResourceKind.WHOLE)
        return max(0, free.bit_count() - self.candidate.nameless - self.unnamed)

    def units_for(self, shape: Shape) -> int:
        """Units of the shape's GPU resource that are free: both for kube-scheduler, which counts what
        the device plugin offers, and for the picture, which knows the GPUs.
        """
        need = shape.need
        offered = self.units.get(need.resource, 0)
        return min(offered, self.free_gpus()) if need.kind is ResourceKind.WHOLE else offered

    def fits(self, shape: Shape) -> tuple[int, Obstacle | None]:
        """How many members of this shape fit beside GPUs' health, and what keeps the next one out."""
        need, asked = shape.need, shape.amounts
        limits = [
            (self.pods, Obstacle.PODS_SHORT),
            (_times(self.left.cpu_m, asked.cpu_m), Obstacle.CPU_SHORT),
            (_times(self.left.memory_bytes, asked.memory_bytes), Obstacle.MEMORY_SHORT),
            (_times(self.left.storage_bytes, asked.storage_bytes), Obstacle.STORAGE_SHORT),
        ]
        if need.kind is not ResourceKind.NONE:
            limits.append((self.units_for(shape) // need.count, self._lack_of_gpus(shape)))
        if shape.ports:
            taken = any(port.clashes(other) for port in shape.ports for other in self.ports)
            limits.append((0 if taken else 1, Obstacle.PORT_TAKEN))
        most, first = min(limits, key=lambda limit: limit[0])
        return max(0, most), first if most < 1 else None

    def _lack_of_gpus(self, shape: Shape) -> Obstacle:
        offered = self.cluster.allocatable.get(shape.need.resource, 0)
        return Obstacle.TOO_SMALL if offered < shape.need.count else Obstacle.GPUS_HELD

    def after(self, shape: Shape, count: int) -> Host:
        """The host when `count` more members of this shape are on it. A negative count takes back."""
        need, asked = shape.need, shape.amounts
        gpus = count * need.count if need.kind is not ResourceKind.NONE else 0
        units = self.units
        if gpus:
            units = {**units, need.resource: units.get(need.resource, 0) - gpus}
        return replace(
            self,
            units=units,
            unnamed=self.unnamed + (gpus if need.kind is ResourceKind.WHOLE else 0),
            left=_less(self.left, asked, count),
            pods=self.pods - count,
            ports=self.ports | shape.ports if count > 0 else self.ports - shape.ports,
        )


def _less(have: Amounts, asked: Amounts, times: int) -> Amounts:
    """What is left when `asked` is taken so many times."""
    return Amounts(
        have.cpu_m - times * asked.cpu_m,
        have.memory_bytes - times * asked.memory_bytes,
        have.storage_bytes - times * asked.storage_bytes,
    )


def _times(have: int, asked: int) -> int:
    """How often `asked` is in `have`; nothing asked is in anything, be it overbooked."""
    return have // asked if asked else _ANY


_ANY = 1 << 30


def hosts(picture: Picture, site: Site) -> list[Host]:
    """The nodes that pods may go to, by name, with the claims on them taken away."""
    fleet = picture.fleet
    found = {
        name: _host(fleet, cluster, site.rooms[name], picture.candidates.get(name))
        for name, cluster in fleet.cluster.items()
        if name in site.rooms
    }
    for claim in sorted(site.claims, key=lambda each: each.uid):
        if claim.node in found:
            found[claim.node] = found[claim.node].after(claim.shape, 1)
    return [found[name] for name in sorted(found)]


def _host(fleet: Fleet, cluster: ClusterNode, room: Room, candidate: Candidate | None) -> Host:
    units: Mapping[str, int] = cluster.allocatable
    if allocations := fleet.allocations.get(cluster.name):
        held = _by_resource((each.resource, each.count) for each in allocations)
        units = {resource: offered - held[resource] for resource, offered in units.items()}
    return Host(
        cluster=cluster,
        candidate=candidate,
        units=units,
        left=_less(room.allocatable, room.held, 1),
        pods=room.pods - room.held_pods,
        ports=room.ports,
    )


def _by_resource(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for resource, count in counts:
        found[resource] += count
    return found
