"""Application faults: harmless one by one, telling when several workloads have them on one GPU.

XIDs 13, 31, 43 and their like come from user code; one bad job can produce hundreds (NVSentinel
#1629, #1710). But where workloads that have nothing to do with each other fail on the same GPU, it
is the GPU (NVIDIA's XID workflows 13 and 31). Other codes are harmless once and suspect when they
come back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from scoring.health.findings import Finding
from scoring.model import Health
from scoring.policy import Policy
from scoring.xid.catalogue import Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A burst of faults that belong together, with no silence longer than `incidentGap`."""

    start_s: float
    end_s: float
    workload: str | None = None
    """Whose faults; None: not known, or a code that counts by itself."""
    code: str | None = None
    """The code that must not come back; None: a fault of an application."""

    def near(self, other: Incident, gap_s: float) -> bool:
        """Whether both are one burst."""
        if (self.workload, self.code) != (other.workload, other.code):
            return False
        return self.start_s - gap_s <= other.end_s and other.start_s <= self.end_s + gap_s


def incident(finding: Finding) -> Incident:
    """One event as an incident of its own."""
    time_s = finding.time_s
    if finding.pattern is Pattern.REPEAT:
        return Incident(start_s=time_s, end_s=time_s, code=finding.cause)
    return Incident(start_s=time_s, end_s=time_s, workload=finding.workload)


def noted(incidents: tuple[Incident, ...], new: Incident, policy: Policy) -> tuple[Incident, ...]:
    """`incidents` with one more, in order of time; bursts that it joins become one."""
    apart = []
    for each in incidents:
        if each.near(new, policy.incident_gap_s):
            new = replace(
                new, start_s=min(new.start_s, each.start_s), end_s=max(new.end_s, each.end_s)
            )
        else:
            apart.append(each)
    return tuple(sorted([*apart, new], key=_order))


def _order(each: Incident) -> tuple[float, float, str, str]:
    return each.start_s, each.end_s, each.workload or "", each.code or ""


def recent(incidents: tuple[Incident, ...], now_s: float, policy: Policy) -> tuple[Incident, ...]:
    """Those that still count."""
    return tuple(each for each in incidents if each.end_s > now_s - policy.pattern.window_s)


def judged(incidents: Iterable[Incident], policy: Policy) -> Health:
    """SUSPECT where distinct workloads failed or a code came back, DEGRADED where workloads did so
    often, else HEALTHY.

    A workload that is not known counts as an incident and never as a distinct workload: a storm of
    one job must not condemn the GPU.
    """
    faults = [each for each in incidents if each.code is None]
    if len(_workloads(faults)) >= policy.pattern.workloads:
        often = len(faults) >= policy.pattern.incidents
        return Health.DEGRADED if often else Health.SUSPECT
    codes = Counter(each.code for each in incidents if each.code is not None)
    return Health.SUSPECT if any(count > 1 for count in codes.values()) else Health.HEALTHY


def since_s(incidents: tuple[Incident, ...], state: Health, policy: Policy) -> float:
    """When the incidents, which are in order of time and are judged `state`, came to that, however
    many of them were heard of at once.
    """
    enough = bisect_left(
        range(1, len(incidents)), state, key=lambda count: judged(incidents[:count], policy)
    )
    return incidents[enough].start_s


def of_jobs(gpus: Iterable[Iterable[Incident]]) -> frozenset[str]:
    """The workloads that fail on several GPUs: it is they, and no GPU is to blame for them."""
    seen = Counter(workload for incidents in gpus for workload in _workloads(incidents))
    return frozenset(workload for workload, count in seen.items() if count > 1)


def described(incidents: Iterable[Incident]) -> str:
    """The incidents in a few words."""
    each = list(incidents)
    codes = sorted({incident.code for incident in each if incident.code is not None})
    text = f"{len(each)} incidents, {len(_workloads(each))} workloads"
    return f"{text}, {', '.join(codes)}" if codes else text


def _workloads(incidents: Iterable[Incident]) -> frozenset[str]:
    return frozenset(each.workload for each in incidents if each.workload is not None)
