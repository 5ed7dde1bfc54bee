"""Three decisions of the day, explained by Surefoot itself (POST /explain)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from extender.demo import scheduler
from extender.demo.jobs import Job
from scoring.model import NodeName
from scoring.reasons import Reason

HEALTH: Final = frozenset(
    {
        Reason.GPU_LOST,
        Reason.GPU_FAILED,
        Reason.REBOOT_REQUIRED,
        Reason.RESET_REQUIRED,
        Reason.GPU_DEGRADED,
    }
)
"""A GPU is broken, and somebody has to act."""
DOUBT: Final = frozenset(
    {
        Reason.LINKS_IMPAIRED,
        Reason.GPU_PROBATION,
        Reason.NODE_STALE,
        Reason.NODE_SILENT,
    }
)
"""Its links, its past or its silence speak against it."""

Explain = Callable[[Mapping[str, Any], Sequence[NodeName]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One node of one answer of /explain."""

    time_s: float
    pod: str
    gpus: int
    summary: str
    node: NodeName
    told: Mapping[str, Any]
    """The node's part of the answer."""


class Collector:
    """Asks /explain about gangs until it has a veto of each kind and a pass."""

    def __init__(self, explain: Explain, offered: Callable[[Job], Sequence[NodeName]]) -> None:
        """`offered`: the nodes that the scheduler would ask about."""
        self._explain = explain
        self._offered = offered
        self._vetoes: dict[frozenset[Reason], Explained] = {}
        self._pass: Explained | None = None

    @property
    def found(self) -> tuple[Explained, ...]:
        """What was found so far: the vetoes, then the pass."""
        vetoes = tuple(self._vetoes[kind] for kind in (HEALTH, DOUBT) if kind in self._vetoes)
        return (*vetoes, self._pass) if self._pass else vetoes

    def ask(self, job: Job, time_s: float) -> None:
        """Look at one gang that is about to be tried."""
        wanted = [kind for kind in (HEALTH, DOUBT) if kind not in self._vetoes]
        names = self._offered(job)
        if not names or not (wanted or self._pass is None):
            return
        answer = self._explain(scheduler.pod_of(job, 0), names)
        vetoed = False
        for name, told in answer["nodes"].items():  # vetoes first, then the best
            found = Explained(
                time_s=time_s,
                pod=scheduler.pod_name(job, 0),
                gpus=job.gpus,
                summary=answer["summary"],
                node=NodeName(name),
                told=told,
            )
            if told["verdict"] == "pass":
                if vetoed or self._pass is None:
                    self._pass = found
                return
            for kind in wanted:
                if Reason(told["reason"]) in kind:
                    self._vetoes.setdefault(kind, found)
                    vetoed = True
