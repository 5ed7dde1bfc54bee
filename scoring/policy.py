"""Every threshold and weight of the judgement, with its unit, its default and where it is from.

A site sets any of them under `policy:` in the configuration, by the camelCase name and in Go
durations (`stale_after_s` is `staleAfter: 60s`); docs/configuration.md is generated from here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from scoring.settings import out_of_range, setting, settings


class PolicyError(ValueError):
    """A policy whose values cannot work together; `problems`: each as (path, what is wrong)."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {problem}" for path, problem in problems))
        self.problems = tuple(problems)


class GangsUnderOpenBreaker(StrEnum):
    """Whether an open breaker lets gangs use softly excluded GPUs too."""

    REFUSE = "refuse"
    ADMIT = "admit"


DAY_S: Final = 86_400.0
REJECTION_KEPT_S: Final = DAY_S
"""How long the cache keeps a rejection: no policy can look further back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangPolicy:
    """What gangs accept, and for how long a plan binds them."""

    suspect: bool = setting(False, "Gangs may use SUSPECT GPUs.", "ours, docs/adr/0007")
    leader_silence_s: float = setting(
        60.0,
        "How long after the last sign of a leading controller its plans bind the webhook; then they only say which node comes first. Longer than `controller.lease.duration`.",
        "ours: four lease durations, so that a change of the leader frees no gang",
        low=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglePolicy:
    """What single pods accept, last in order."""

    degraded: bool = setting(True, "Single pods may use DEGRADED GPUs.", "ours, docs/adr/0007")
    unknown: bool = setting(
        True, "Single pods may use UNKNOWN, UNMONITORED and stale GPUs.", "ours, docs/adr/0007"
    )
    probation_max_priority: int = setting(
        0,
        "Single pods of this priority or lower count as preemptible and may use PROBATION GPUs.",
        "Kubernetes gives 0 to pods without a priority class",
        low=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerPolicy:
    """When the controller trips the breaker of a pool, what an open one changes, and how many nodes
    it may taint.
    """

    gangs: GangsUnderOpenBreaker = setting(
        GangsUnderOpenBreaker.REFUSE,
        "Whether an open breaker lets gangs use GPUs excluded by soft causes: refuse or admit.",
        "ours, docs/adr/0007",
    )
    silent_ratio: float = setting(
        0.3,
        "The part of a pool's nodes above which falling silent together freezes the pool: a network or a cache is at fault then, not the nodes.",
        "ours",
        high=1,
    )
    silent_nodes: int = setting(
        2, "Fewer nodes than this never freeze a pool.", "ours: one node may just be down", low=1
    )
    silent_within_s: float = setting(
        60.0,
        "Nodes whose telemetry grew stale within this time fell silent together.",
        "ours: four polls",
        low=1,
        high=300,
    )
    open_ratio: float = setting(
        0.2,
        "The part of a pool's GPUs above which those that gangs refuse for soft causes open the breaker.",
        "Karpenter: 20 % of a NodePool's nodes",
        high=1,
    )
    open_gpus: int = setting(
        3, "So many such GPUs never open it.", "GKE on-prem: 3 nodes or 10 %, the larger"
    )
    rate_ratio: float = setting(
        0.1,
        "The part of a pool's nodes above which those of which gangs newly refuse GPUs for soft causes open the breaker, and keep it open.",
        "GKE on-prem: 10 % an hour",
        high=1,
    )
    rate_nodes: int = setting(
        3, "So many such nodes never open it.", "GKE on-prem: 3 nodes or 10 %, the larger"
    )
    rate_within_s: float = setting(
        3_600.0, "For so long GPUs are newly refused.", "GKE on-prem: 1 h", low=60
    )
    close_ratio: float = setting(
        0.15, "An open breaker closes once their part is no larger than this ...", "ours", high=1
    )
    close_after_s: float = setting(3_600.0, "... for this long.", "ours: 1 h of calm", low=60)
    taint_ratio: float = setting(
        0.2,
        "The part of a pool's nodes that may carry the taint surefoot.dev/unfit; one node always may.",
        "Karpenter: 20 % of a NodePool's nodes",
        high=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlapPolicy:
    """How returning trouble is damped."""

    half_life_s: float = setting(
        DAY_S,
        "Half-life of the penalty for each entry into DEGRADED or worse.",
        "ours; gpud and NVSentinel count returns too",
        low=1,
    )
    probation_at: float = setting(
        3.0,
        "Penalty from which the least state is PROBATION.",
        "ours; gpud and NVSentinel count returns too",
        low=0.1,
    )
    probation_for_s: float = setting(
        DAY_S, "How long that PROBATION lasts.", "ours; gpud and NVSentinel count returns too"
    )
    failed_at: float = setting(
        5.0,
        "Penalty from which the GPU needs inspection: FAILED.",
        "NVSentinel: 5 remediations in 7 days",
        low=0.1,
    )
    exit_delay_s: float = setting(
        300.0,
        "Clean time asked before a level cause closes; doubles with each re-entry.",
        "ours; gpud and NVSentinel count returns too",
        low=1,
    )
    exit_delay_max_s: float = setting(
        21_600.0, "Longest such time.", "ours; gpud and NVSentinel count returns too", low=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternPolicy:
    """When application faults on one GPU point at the GPU."""

    window_s: float = setting(
        DAY_S, "Window in which incidents are counted.", "XID catalogue, workflows 13 and 31", low=1
    )
    workloads: int = setting(
        2,
        "Distinct workloads on one GPU from which it is SUSPECT.",
        "XID catalogue, workflows 13 and 31",
        low=1,
    )
    incidents: int = setting(
        5,
        "Incidents on one GPU from which it is DEGRADED.",
        "NVSentinel: 5 fatal XIDs in 24 h",
        low=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionPolicy:
    """What pods that a node's kubelet refused, or that failed at once there, say of the node."""

    half_life_s: float = setting(
        900.0,
        "Half-life of what one rejection counts against its node for pods of the same owner.",
        "ours; kubernetes #67874 and #70201 ask for a penalty that decays",
        low=1,
    )
    weight: float = setting(
        0.8,
        "The part of a node's rank that a fresh rejection takes from pods of the same owner.",
        "ours: the node comes after nearly every other, and stays possible",
        high=1,
    )
    window_s: float = setting(
        900.0,
        "Window in which rejections of any owner are counted against the node itself.",
        "ours; pytorch/ci-infra #1058: 554 pods in 106 minutes",
        low=1,
    )
    pods: int = setting(
        3,
        "Rejections in one window from which the node is SUSPECT ...",
        "ours; pytorch/ci-infra #1058",
        low=1,
    )
    workloads: int = setting(
        2,
        "... when they are of this many owners: one owner alone may be at fault itself.",
        "ours; XID catalogue, workflows 13 and 31, count workloads too",
        low=1,
    )
    suspect_for_s: float = setting(
        3_600.0,
        "How long the node is SUSPECT after the last such window.",
        "ours: gangs would fail again each time that a window ends",
        low=1,
    )
    keep_s: float = setting(
        7_200.0,
        "Age from which a rejection counts for nothing; the cache keeps it for 24h at most.",
        "ours: eight half-lives leave less than 1 %",
        low=1,
        high=REJECTION_KEPT_S,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptPolicy:
    """How often the same cause may be cured before a harder cure is asked."""

    resets: int = setting(
        2,
        "Resets for one cause before a reboot is asked.",
        "ours; gpud and NVSentinel count returns too",
        low=1,
    )
    reboots: int = setting(
        1, "Reboots for one cause before the GPU is FAILED.", "gpud: 2 reboots for one XID", low=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPolicy:
    """Weights of the parts of a rank; only their proportions matter."""

    health: float = setting(
        0.4, "Weight of soft health: SUSPECT, DEGRADED and UNKNOWN come last.", "docs/adr/0005"
    )
    links: float = setting(
        0.25,
        "Weight of the slowest link of the worst set.",
        "docs/adr/0005; a ring is as fast as its slowest link",
    )
    fragmentation: float = setting(
        0.15, "Weight of keeping whole nodes whole.", "docs/adr/0005, after FGD (ATC 2023)"
    )
    domain: float = setting(
        0.2, "Weight of closeness to the gang's bound members.", "docs/adr/0005"
    )
    links_full_gbps: float = setting(
        370.8, "Slowest-link speed that earns the full part, in GB/s.", "NCCL: NV18 of H100", low=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StarvationPolicy:
    """For the planner of the controller."""

    after_s: float = setting(
        600.0,
        "How long a gang that does not fit waits before it holds its best domain (read by the planner only).",
        "ours",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All of it. Validated on creation: a `Policy` that exists is sound."""

    poll_s: float = setting(15.0, "How often an agent polls.", "NVSentinel", low=1)
    stale_after_s: float = setting(
        60.0,
        "Age of the last full sample from which a node takes no gangs.",
        "ours: four polls; NVSentinel's watchdog waits 45 s",
        low=1,
    )
    unknown_after_s: float = setting(
        600.0,
        "Age of the last full sample from which a node is UNKNOWN.",
        "ours",
        low=1,
    )
    unknown_long_s: float = setting(
        3_600.0,
        "After UNKNOWN for longer than this, two good samples are needed to leave it.",
        "ours",
    )
    new_grace_s: float = setting(
        600.0,
        "How long a GPU may be NEW, without a full sample, before it is UNKNOWN.",
        "ours; NVSentinel #812, #1423",
    )
    entry_polls: int = setting(
        3,
        "Consecutive bad polls before a level (throttle, thermal, link, width, rate) opens its cause.",
        "NVSentinel #1668",
        low=1,
    )
    clean_polls: int = setting(
        5, "Consecutive clean polls before a level's cause closes.", "ours", low=1
    )
    event_clean_polls: int = setting(
        3,
        "Clean polls after the reset or reboot before an event's cause becomes PROBATION.",
        "ours",
        low=1,
    )
    probation_s: float = setting(
        14_400.0, "Clean time on PROBATION before HEALTHY.", "NVSentinel #695"
    )
    incident_gap_s: float = setting(
        180.0,
        "Silence that ends an incident of XIDs on one GPU.",
        "NVIDIA Fleet Intelligence, XID bursts",
        low=1,
    )
    rate_clear_ratio: float = setting(
        0.5,
        "A rate's cause closes below this part of its trip level ...",
        "ours",
        high=1,
    )
    rate_clear_s: float = setting(600.0, "... for this long.", "ours")
    pool_label: str = setting(
        "nvidia.com/gpu.product",
        "Node label that names the pool for breakers.",
        "GPU feature discovery",
        low=None,
    )
    blocking_causes: tuple[str, ...] = setting(
        ("xid.79", "gpu.lost"),
        "Causes of a GPU that make the stock device plugin fail every GPU pod of the node.",
        "k8s-device-plugin #2038",
        low=None,
    )
    gang: GangPolicy = field(default_factory=GangPolicy)
    single: SinglePolicy = field(default_factory=SinglePolicy)
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    flap: FlapPolicy = field(default_factory=FlapPolicy)
    pattern: PatternPolicy = field(default_factory=PatternPolicy)
    rejection: RejectionPolicy = field(default_factory=RejectionPolicy)
    attempts: AttemptPolicy = field(default_factory=AttemptPolicy)
    rank: RankPolicy = field(default_factory=RankPolicy)
    starvation: StarvationPolicy = field(default_factory=StarvationPolicy)

    def __post_init__(self) -> None:
        if problems := [*out_of_range(self), *_contradictions(self)]:
            raise PolicyError(problems)


def _contradictions(policy: Policy) -> Iterator[tuple[str, str]]:
    if policy.unknown_after_s < policy.stale_after_s:
        yield "unknown_after_s", "must not be shorter than stale_after_s"
    if policy.flap.failed_at < policy.flap.probation_at:
        yield "flap.failed_at", "must not be lower than flap.probation_at"
    if policy.flap.exit_delay_max_s < policy.flap.exit_delay_s:
        yield "flap.exit_delay_max_s", "must not be shorter than flap.exit_delay_s"
    if policy.rejection.keep_s < policy.rejection.window_s + policy.rejection.suspect_for_s:
        yield (
            "rejection.keep_s",
            "must not be shorter than rejection.window_s and rejection.suspect_for_s together",
        )
    if policy.breaker.close_ratio > policy.breaker.open_ratio:
        yield "breaker.close_ratio", "must not be higher than breaker.open_ratio"
    weights = policy.rank
    if weights.health + weights.links + weights.fragmentation + weights.domain <= 0:
        yield "rank", "at least one weight must be above 0"


def digest(policy: Policy) -> str:
    """Twelve hex digits that change whenever any value of the policy does."""
    text = "\n".join(f"{path}={value!r}" for path, _, value in settings(policy))
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


DEFAULT: Final = Policy()
