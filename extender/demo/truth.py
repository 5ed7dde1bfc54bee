"""What is truly wrong with a GPU at a time: the script's faults, and the health that follows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from extender.demo.agents import Causes, Histories, History
from extender.demo.cluster import Placement
from extender.demo.faults import REBOOT_S, Fault, Kind
from scoring.model import NodeName

_NONE = History()


class Truth:
    """The faults of the day by place, and what perfect agents make of them."""

    def __init__(self, faults: Sequence[Fault], health: Histories) -> None:
        self.faults = faults
        self._health = health
        self._by_node: defaultdict[NodeName, list[Fault]] = defaultdict(list)
        for fault in faults:
            self._by_node[fault.node].append(fault)

    def of_gpus(self, places: Iterable[Placement]) -> list[Fault]:
        """The faults that the GPUs of `places` have on this day."""
        return [
            fault
            for place in places
            for fault in self._by_node[place.node]
            if fault.gpu in place.gpus
        ]

    def impaired(self, places: Iterable[Placement], time_s: float) -> bool:
        """Whether a GPU of `places` is broken or slow at this moment."""
        return any(fault.active(time_s) for fault in self.of_gpus(places))

    def unhealthy(self, places: Sequence[Placement], time_s: float) -> bool:
        """Whether a GPU of `places` is impaired, or not HEALTHY to an agent that misses nothing."""
        return self.impaired(places, time_s) or any(
            self.causes(place.node, gpu, time_s) for place in places for gpu in place.gpus
        )

    def causes(self, node: NodeName, gpu: int, time_s: float) -> Causes:
        """The causes that an agent that misses nothing has open on a GPU."""
        return self._health.get((node, gpu), _NONE).at(time_s)

    def cut(self, node: NodeName, time_s: float) -> frozenset[int]:
        """The GPUs of a node whose NVLinks are down."""
        return frozenset(
            fault.gpu
            for fault in self._by_node[node]
            if fault.gpu is not None and fault.effect.cuts_links and fault.active(time_s)
        )

    def withdrawn(self, time_s: float) -> frozenset[tuple[NodeName, int]]:
        """The GPUs that the stock device plugin has withdrawn for an XID."""
        return frozenset(
            (fault.node, fault.gpu)
            for fault in self.faults
            if fault.gpu is not None and fault.effect.kills and fault.active(time_s)
        )

    def down(self, time_s: float) -> frozenset[NodeName]:
        """The nodes that reboot."""
        return frozenset(
            fault.node
            for fault in self.faults
            if fault.rebooted and fault.end_s - REBOOT_S <= time_s < fault.end_s
        )

    def silent_since_s(self, node: NodeName, time_s: float) -> float | None:
        """Since when nothing was heard of a node's agent; None: it is heard."""
        for fault in self._by_node[node]:
            if fault.kind is Kind.SILENCE and fault.active(time_s):
                return fault.start_s
            if fault.rebooted and fault.end_s - REBOOT_S <= time_s < fault.end_s:
                return fault.end_s - REBOOT_S
        return None
