"""docs/health.md: states, causes and their thresholds, XIDs and SXIDs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from extender.config import durations
from extender.reference import events
from extender.reference.markdown import HEAD, member_docs, runs_of, table
from scoring import rejections, topology
from scoring.candidate import candidate
from scoring.health import implied
from scoring.health.causes import SPECS, Clear
from scoring.links import links_of
from scoring.model import (
    Cause,
    Fabric,
    Fleet,
    Gpu,
    GpuUuid,
    Health,
    Need,
    Node,
    NodeName,
    Rejection,
    WorkClass,
)
from scoring.policy import DEFAULT
from scoring.rank import HEALTH_RATIO
from scoring.signals.catalogue import Signal
from scoring.signals.thresholds import THRESHOLDS, Comparison, Entry, Threshold
from scoring.verdict import judge

_INTRODUCTION: Final = """\
# Health: states and causes

A GPU is never *set* to a state. It has open causes, each cause has a state, and the state shown is
the most severe one. A cause closes by its own rule only; nothing that concerns another cause closes
it. A pod may use a GPU if the policy accepts the state of **every** open cause.

Whoever reports a node sends its causes in the [Node document](documents.md). The tables below are the
catalogue from which Surefoot itself makes causes of readings: in `surefoot inspect` and in the demo
today, in the node agent when there is one.
"""

_STATES: Final[Mapping[Health, str]] = {
    Health.HEALTHY: "No cause is open and samples are fresh.",
    Health.NEW: "Seen, and not yet fully measured.",
    Health.SUSPECT: "A weak sign; watched.",
    Health.PROBATION: "Back from a repair, or in trouble too often.",
    Health.UNMONITORED: "The agent says that it cannot watch the GPU.",
    Health.DEGRADED: "Works, but slowly or at risk.",
    Health.UNKNOWN: "No current data. No data is not health.",
    Health.RESET_REQUIRED: "Needs a GPU reset.",
    Health.REBOOT_REQUIRED: "Needs a reboot of the node.",
    Health.FAILED: "Needs an inspection or another board.",
}

_ENTRIES: Final[Mapping[Entry, str]] = {
    Entry.EVENT: "at once",
    Entry.FLAG: "at once",
    Entry.LEVEL: "after `entryPolls` polls in a row",
    Entry.RATE: "after `entryPolls` polls in a row",
}

_TESTS: Final[Mapping[Comparison, str]] = {
    Comparison.AT_LEAST: ">=",
    Comparison.ABOVE: ">",
    Comparison.BELOW: "<",
    Comparison.ANY_BIT: "has a bit of",
    Comparison.ONE_OF: "is one of",
}


def page() -> str:
    """The page of states, causes, XIDs and SXIDs."""
    return "\n".join(
        (HEAD + _INTRODUCTION, _states(), _causes(), _derived(), events.xids(), events.sxids())
    )


def _states() -> str:
    rows = (
        (f"`{state.name}`", meaning, *_users(state), f"{HEALTH_RATIO[state]:g}")
        for state, meaning in _STATES.items()
    )
    heads = ("State", "Meaning", "Gang", "Single pod", "Preemptible single", "Rank part `health`")
    return f"""## States

By severity, the worst last. *Gang*, *Single pod*: whether the default policy lets it use such a GPU.
`policy.gang`, `policy.single` and the [annotations](annotations.md) change that. A single pod counts
as preemptible up to `policy.single.probationMaxPriority`.

{table(heads, rows)}"""


def _users(state: Health) -> Iterator[str]:
    """Whether a gang's pod, a single pod and a preemptible one may use a GPU in this state."""
    gpu = Gpu(uuid=GpuUuid("GPU-0"), index=0, causes=(Cause(id="example", state=state),))
    node = Node(name=NodeName("node"), gpus=(gpu,), links=links_of((0,), {}))
    fleet = Fleet(
        generation=1, now_s=0.0, nodes={node.name: node}, seen_s={node.name: 0.0},
        allocations={}, gangs={}, overrides={}, breakers={},
    )  # fmt: skip
    ready = candidate(fleet, node, DEFAULT)
    for need in (
        Need(work=WorkClass.GANG, count=1),
        Need(work=WorkClass.SINGLE, count=1),
        Need(work=WorkClass.SINGLE, count=1, preemptible=True),
    ):
        yield "yes" if judge(ready, need, DEFAULT).fits else "no"


def _causes() -> str:
    trips: defaultdict[str, list[str]] = defaultdict(list)
    for threshold in THRESHOLDS:
        trips[threshold.cause].append(_trip(threshold))
    heads = ("Cause", "State", "Scope", "Opens", "Clears", "Meaning", "What to do", "Trips at")
    rows = (
        (
            f"`{spec.id}`",
            f"`{spec.state.name}`",
            spec.scope.value,
            _ENTRIES[spec.entry],
            f"[{spec.clear.value}](#clear-rules)",
            spec.meaning,
            spec.advice,
            "; ".join(trips[spec.id]) or "an event",
        )
        for spec in SPECS
    )
    clears = ((f"{Clear[name].value}", text) for name, text in member_docs(Clear).items())
    return f"""## Causes

The scope says whom a cause concerns: `link` and `fabric` are of no concern to a pod that uses one
GPU alone. A cause of XIDs and SXIDs is named `xid.N` or `sxid.N`; it opens at once and clears by
`repair`, or by `window` where its state is `SUSPECT`.

{table(heads, rows)}
### Clear rules

{table(("Rule", "The cause is over when"), clears)}"""


def _trip(threshold: Threshold) -> str:
    signal, trip = threshold.signal.value, threshold.trip
    if threshold.mask is not None:
        signal = f"({signal} >> {threshold.shift}) & {threshold.mask:#x}"
    if isinstance(trip, Signal):
        limit = trip.value
    elif isinstance(trip, frozenset):
        limit = runs_of(sorted(trip))
    elif threshold.test is Comparison.ANY_BIT:
        limit = f"{int(trip):#x}"
    else:
        limit = f"{trip:.3g}"
    test = (
        "=" if limit.isdigit() and threshold.test is Comparison.ONE_OF else _TESTS[threshold.test]
    )
    unit = " a second" if threshold.entry is Entry.RATE else ""
    state = f" ({threshold.state.name})" if threshold.state is not None else ""
    return f"`{signal} {test} {limit}`{unit}{state}"


def _derived() -> str:
    """The causes that a reader makes from a document, each shown by an example that has it."""
    examples = [*_fabric_examples(), *_node_examples(), *_rejection_examples()]
    heads = ("Cause", "State", "Scope", "Evidence, as an example")
    rows = (
        (f"`{each.id}`", f"`{each.state.name}`", each.scope.value, f"`{each.evidence}`")
        for each in examples
    )
    return f"""## Causes that follow from a document

Nobody sends these: whoever reads a [Node document](documents.md) derives them, from `expected`,
`links`, `fabric` and `sampledAgo`, and `{rejections.CAUSE}` from [Rejections](operations.md#rejections) of pods
on the node. They are over when the documents no longer give reason for them.
A GPU whose `sampledAgo` is {durations.show(DEFAULT.stale_after_s)} or more carries the cause `stale` with state `UNKNOWN`.
There are two of that name: the one of the catalogue above, which is made of readings, is `UNMONITORED`
until `policy.unknownAfter`, and `UNKNOWN` from then on.

{table(heads, rows)}"""


def _fabric_examples() -> Iterator[Cause]:
    yield from topology.fabric_problems(Fabric(state="in_progress"))
    yield from topology.fabric_problems(Fabric(state="completed", status="error"))
    yield from topology.fabric_problems(Fabric(state="completed", health_summary="limited"))
    for mask in (0x1, 0x4, 0x10, 0x40, 0x500):
        yield from topology.fabric_problems(Fabric(state="completed", health_mask=mask))


def _node_examples() -> Iterator[Cause]:
    """A node that lacks GPUs, and one of whose GPUs has few links to its peers, or none."""
    gpus = tuple(Gpu(uuid=GpuUuid(f"GPU-{i}"), index=i, model="H100") for i in range(4))
    shown: dict[str, Cause] = {}
    for word in ("NV12", "SYS"):
        pairs = {(i, j): word if j == len(gpus) - 1 else "NV18" for j in range(4) for i in range(j)}
        links = links_of(range(len(gpus)), pairs)
        node = Node(name=NodeName("node"), gpus=gpus, links=links, expected=8)
        for causes in implied.open_causes(node):
            shown |= {cause.id: cause for cause in causes}
    yield from shown.values()


def _rejection_examples() -> Iterator[Cause]:
    """A node that refused a pod of one owner more than once, and one of another."""
    reason, rules = "UnexpectedAdmissionError", DEFAULT.rejection
    found = [
        Rejection(
            node=NodeName("node"),
            owner=f"owner-{i % rules.workloads}",
            reason=reason,
            at_s=20.0 * i,
        )
        for i in range(max(rules.pods, rules.workloads))
    ]
    cause, _ = rejections.suspicion(found, found[-1].at_s, DEFAULT)
    if cause is not None:
        yield cause
