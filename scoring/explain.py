"""Why: for each node the verdict with its evidence, and for the whole ask one sentence.

Nothing here decides: it judges again what `ranking` judged, and keeps what that threw away.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from scoring import rank, rejections, standing, verdict
from scoring.candidate import STALE, Candidate, quarantine
from scoring.gangs import telling
from scoring.gangs.rules import GangRules
from scoring.gangs.sitting import Sitting, sitting, word_on
from scoring.health.staleness import Freshness
from scoring.model import (
    Ask,
    GpuUuid,
    Health,
    Need,
    NodeName,
    OverrideVerdict,
    ResourceKind,
    Scope,
    WorkClass,
)
from scoring.picture import Picture
from scoring.rank import Parts
from scoring.reasons import Reason
from scoring.standing import Standing

CURES: Final[Mapping[Health, str]] = MappingProxyType(
    {
        Health.FAILED: "were replaced",
        Health.REBOOT_REQUIRED: "came back after a reboot of the node",
        Health.RESET_REQUIRED: "were reset",
        Health.UNKNOWN: "reported its health",
        Health.DEGRADED: "were reset or recovered",
        Health.UNMONITORED: "were monitored",
        Health.PROBATION: "ended its probation",
        Health.SUSPECT: "were cleared of suspicion",
        Health.NEW: "were measured",
    }
)
"""What would make a GPU in this state usable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One measured thing that speaks against a GPU or node."""

    gpu: GpuUuid | None
    """None: it concerns the node."""
    cause: str
    value: str
    age_s: float | None
    """Since it was last seen; None: nobody says when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAccount:
    """The verdict on one node in full."""

    name: NodeName
    reason: Reason | None
    rank: float | None
    """None where the pod may not go there."""
    parts: Parts | None
    set: tuple[GpuUuid, ...]
    """The GPUs that the rank rests on: predicted unless a plan or DRA enforces them."""
    evidence: tuple[Evidence, ...]
    """Of a node that fits: what lowers its rank. Of any: what the API server says against it, which
    is kube-scheduler's to judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The answer to "why?" for one ask."""

    summary: str
    counts: Mapping[Reason, int]
    nodes: tuple[NodeAccount, ...]
    """Vetoed ones first, then the planned one, then by rank."""
    nearest: tuple[str, ...]
    """What would make a vetoed node fit, the least first; or the gang."""


def account(
    picture: Picture,
    ask: Ask,
    names: Sequence[NodeName],
    unreported: Reason | None,
    limit: int,
    rules: GangRules,
) -> Account:
    """Why each of `names` fits `ask` or not, at most `limit` of them in full.

    `unreported` is the reason for nodes without a document; None: they pass, last.
    """
    stands = standing.standing(picture, ask)
    place = sitting(picture.fleet, ask, rules, picture.policy)
    accounts = [
        _placed(place, _node_account(picture, ask, stands, name, unreported)) for name in names
    ]
    accounts.sort(
        key=lambda each: (
            each.reason is None,
            each.name != place.seat,
            -(each.rank or 0.0),
            each.name,
        )
    )
    counts = Counter(each.reason for each in accounts if each.reason is not None)
    sentences = (
        telling.of_member(picture.fleet, ask, rules, picture.policy),
        _summary(ask, accounts, counts),
        telling.unled(picture.fleet, ask, rules, picture.policy),
    )
    return Account(
        summary=" ".join(filter(None, sentences)),
        counts=dict(counts.most_common()),
        nodes=tuple(accounts[:limit]),
        nearest=_nearest(picture, ask, accounts, place, rules),
    )


def _placed(place: Sitting, told: NodeAccount) -> NodeAccount:
    """The account of a node to which the plan of the pod's gang may not let it go."""
    refusal = place.refuses(told.name)
    if refusal is None:
        return told
    return replace(told, reason=refusal, rank=None, parts=None, set=())


def _node_account(
    picture: Picture, ask: Ask, stands: Standing, name: NodeName, unreported: Reason | None
) -> NodeAccount:
    """The verdict on one node with its evidence."""
    candidate = picture.candidates.get(name)
    if candidate is None:
        passes = unreported is None or ask.need.kind is ResourceKind.NONE
        return NodeAccount(
            name=name,
            reason=None if passes else unreported,
            rank=0.0 if passes else None,
            parts=None,
            set=(),
            evidence=tuple(_of_cluster(picture, name, None, ask)),
        )
    judged = verdict.judge(candidate, ask.need, picture.policy)
    evidence = (
        *_evidence(picture, candidate, ask, judged),
        *_of_cluster(picture, name, candidate, ask),
    )
    if judged.reason is not None:
        return NodeAccount(
            name=name, reason=judged.reason, rank=None, parts=None, set=(), evidence=evidence
        )
    judged = rank.choice(candidate, ask.need, judged, picture.policy)
    parts = rank.parts(candidate, ask.need, judged, picture.policy)
    parts = replace(parts, domain=stands.domain_ratio(name), trust=stands.trust_ratio(name))
    handed = rank.handed_out(candidate, judged) if ask.need.kind is ResourceKind.WHOLE else None
    return NodeAccount(
        name=name,
        reason=None,
        rank=rank.rank(parts, picture.policy),
        parts=parts,
        set=candidate.names(handed.mask) if handed is not None else (),
        evidence=evidence,
    )


def _evidence(
    picture: Picture, candidate: Candidate, ask: Ask, judged: verdict.Judgement
) -> tuple[Evidence, ...]:
    """What speaks against the node for this pod, and against the GPUs that decided: the bad ones of
    a veto, else all that may come.
    """
    now_s = picture.fleet.now_s
    found: list[Evidence] = []
    culprits = judged.reach & judged.bad if judged.reason is not None else judged.reach
    if judged.reason is Reason.HEALTHY_GPUS_HELD:
        culprits = judged.bad
    if judged.reason is Reason.GPU_LOST:
        culprits = (1 << len(candidate.node.gpus)) - 1
    if not candidate.readable:
        problem = picture.fleet.quarantined.get(quarantine(candidate.node.name), "")
        found.append(Evidence(gpu=None, cause="document", value=problem, age_s=None))
    if candidate.freshness is not Freshness.FRESH:
        found.append(_silence(picture, candidate.node.name))
    found += _rejections(picture, candidate.node.name, ask)
    for position, gpu in enumerate(candidate.node.gpus):
        if not culprits >> position & 1:
            continue
        told = _word(picture, candidate, position)
        if told is not None and told not in found:  # a word on the node stands at each of its GPUs
            found.append(told)
        for cause in candidate.causes[position]:
            if cause.scope.needs_peers and not ask.need.talks:
                continue
            seen_s = cause.last_s if cause.last_s is not None else cause.first_s
            told = Evidence(
                gpu=None if cause.scope is Scope.NODE else gpu.uuid,
                cause=cause.id,
                value=cause.evidence or cause.state.name,
                age_s=None if seen_s is None else max(0.0, now_s - seen_s),
            )
            if told not in found:  # a cause of the node stands at each of its GPUs
                found.append(told)
    return tuple(found)


def _rejections(picture: Picture, name: NodeName, ask: Ask) -> list[Evidence]:
    """How often the node refused pods of the ask's owner lately."""
    if ask.need.kind is ResourceKind.NONE:
        return []
    now_s = picture.fleet.now_s
    here = picture.fleet.rejections.get(name, ())
    return [
        Evidence(
            gpu=None,
            cause="owner.rejected",
            value=f"{each.reason}, {each.count} of {ask.owner}",
            age_s=max(0.0, now_s - each.last_s),
        )
        for each in rejections.tallies(here, ask.owner, now_s, picture.policy)
    ]


def _of_cluster(
    picture: Picture, name: NodeName, candidate: Candidate | None, ask: Ask
) -> Iterator[Evidence]:
    """What the API server says against the node. No verdict rests on it: kube-scheduler has seen
    it before it asked.
    """
    there = picture.fleet.cluster.get(name)
    if there is None:
        return
    if there.unschedulable:
        yield Evidence(gpu=None, cause="cordoned", value="takes no new pods", age_s=None)
    for taint in there.taints:
        if taint.key != _OF_CORDON:
            value = f"{taint.key}={taint.value}:{taint.effect}".replace("=:", ":")
            yield Evidence(gpu=None, cause="taint", value=value, age_s=None)
    resource = ask.need.resource
    if (
        candidate is None
        or ask.need.kind is not ResourceKind.WHOLE
        or resource not in there.capacity
    ):
        return
    whole = candidate.of_kind(ResourceKind.WHOLE).bit_count()
    allocatable = there.allocatable.get(resource, 0)
    if allocatable < whole:
        value = f"{allocatable} {resource} of {whole} GPUs"
        yield Evidence(gpu=None, cause="allocatable", value=value, age_s=None)


_OF_CORDON: Final = "node.kubernetes.io/unschedulable"
"""The taint that a cordon brings along."""


def _silence(picture: Picture, name: NodeName) -> Evidence:
    seen_s = picture.fleet.seen_s.get(name)
    if seen_s is None:
        return Evidence(gpu=None, cause="telemetry", value="no full sample ever", age_s=None)
    age_s = max(0.0, picture.fleet.now_s - seen_s)
    return Evidence(gpu=None, cause="telemetry", value="last full sample", age_s=age_s)


def _word(picture: Picture, candidate: Candidate, position: int) -> Evidence | None:
    """An operator's word on this GPU or its node, where one is in force."""
    if not (candidate.denied | candidate.allowed) >> position & 1:
        return None
    gpu = candidate.node.gpus[position].uuid
    overrides = picture.fleet.overrides
    of_gpu = overrides.get(f"gpu/{gpu}")
    word = of_gpu or overrides.get(f"node/{candidate.node.name}")
    if word is None:
        return None
    verb = "allowed" if word.verdict is OverrideVerdict.ALLOW else "denied"
    return Evidence(
        gpu=gpu if of_gpu is not None else None,
        cause="override",
        value=f"{verb} by {word.who}: {word.why}",
        age_s=None,
    )


def _summary(ask: Ask, accounts: Sequence[NodeAccount], counts: Counter[Reason]) -> str:
    what = _what(ask)
    fitting = [each for each in accounts if each.reason is None]
    if not accounts:
        return f"No node was offered for {what}."
    if fitting:
        best = fitting[0]
        return (
            f"{len(fitting)} of {len(accounts)} nodes fit {what};"
            f" the best is {best.name} with rank {best.rank:.2f}."
        )
    why = ", ".join(f"{count} {reason.text}" for reason, count in counts.most_common())
    return f"None of {len(accounts)} nodes fits {what}: {why}."


def _what(ask: Ask) -> str:
    if ask.need.kind is ResourceKind.NONE:
        return "a pod that asks for no GPU"
    kind = "gang" if ask.need.work is WorkClass.GANG else "single"
    return f"a {kind} pod asking for {ask.need.count} {ask.need.resource}"


def _nearest(
    picture: Picture,
    ask: Ask,
    accounts: Sequence[NodeAccount],
    place: Sitting,
    rules: GangRules,
) -> tuple[str, ...]:
    """The vetoed nodes that lack the least, each with what it lacks, of those that a plan leaves; of
    a gang that does not fit, what came nearest. Empty where some node fits.
    """
    if any(each.reason is None for each in accounts):
        return ()
    if place.refusal is not None and not place.nodes:
        plan, _ = word_on(picture.fleet, ask, rules)
        return (plan.nearest,) if plan is not None and plan.nearest else ()
    misses = []
    for each in accounts:
        candidate = picture.candidates.get(each.name)
        if candidate is None or place.refuses(each.name):
            continue
        judged = verdict.judge(candidate, ask.need, picture.policy)
        culprits = judged.bad & (judged.reach or judged.bad)
        if judged.reason in _BEYOND_GPUS or not culprits:
            continue
        misses.append((culprits.bit_count(), each.name, culprits, candidate))
    return tuple(
        f"{name} would do if {cures(candidate, ask.need, culprits)}"
        for _, name, culprits, candidate in heapq.nsmallest(3, misses, key=lambda miss: miss[:2])
    )


_BEYOND_GPUS: Final = frozenset(
    {Reason.NODE_SILENT, Reason.NODE_STALE, Reason.FEWER_GPUS, Reason.OVERRIDE_DENIED}
)


def cures(
    candidate: Candidate, need: Need, culprits: int, otherwise: str = "were free of its causes"
) -> str:
    """What would make these GPUs usable, as `GPU 3 were reset and GPU 5 ...`.

    `otherwise`: what is said of a GPU that no state of its own keeps away.
    """
    told = []
    for position, gpu in enumerate(candidate.node.gpus):
        if culprits >> position & 1:
            states = candidate.together if need.talks else candidate.alone
            state = verdict.worst_of(states[position] & ~STALE)
            told.append(f"GPU {gpu.index} {CURES.get(state, otherwise)}")
    return " and ".join(told)
