"""What the runs of the gang come to: one line of JSON, and how that compares with the goals."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cluster_gang import Gangs, Run, Told
from cluster_stage import Stage, tell
from cluster_variants import GANG_VARIANTS
from cluster_volley import Created

RATIO: Final = 0.6
"""Goal: of Surefoot's time to that of a kube-scheduler that looks at every node, at most."""
MEMBERS_PER_S: Final = 200.0
"""Goal: nominated and lifted, at least."""
WRITES_PER_MEMBER: Final = 2.0
"""Goal: at most."""


def measured(
    stage: Stage, members: int, rounds: int, variants: Sequence[str]
) -> dict[str, list[Run]]:
    """The runs of each of these variants, which take turns; void ones are not among them."""
    chosen = [each for each in GANG_VARIANTS if each.name in variants]
    gangs = Gangs(stage, members)
    found: dict[str, list[Run]] = {variant.name: [] for variant in chosen}
    for number in range(rounds):
        for variant in chosen:
            name = f"gang-{variant.name.replace('_', '-')}-{number}"
            run = gangs.run(variant, name)
            if run is None:
                continue
            found[variant.name].append(run)
            if run.told is not None:
                _tell_writes(name, members, run.created, run.told)
    return found


def line(members: int, found: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """Medians over the rounds; null for what was not measured."""
    medians = {
        name: statistics.median(run.took_s for run in runs) for name, runs in found.items() if runs
    }
    ours, theirs = medians.get("surefoot"), medians.get("none_all")
    return {
        "bench": "gang-cluster",
        "members": members,
        **{f"{variant.name}_s": _rounded(medians.get(variant.name)) for variant in GANG_VARIANTS},
        "ratio_all": _rounded(ours / theirs if ours and theirs else None),
    }


def compare(found: Mapping[str, Sequence[Run]], result: Mapping[str, Any]) -> None:
    """Say how far apart the rounds are, and how the line compares with the goal."""
    for name, runs in found.items():
        each = sorted(run.took_s for run in runs)
        spread = f"{each[0]:.2f} to {each[-1]:.2f} s" if each else "every round was void"
        tell(f"{name}: {spread}, {len(each)} rounds count")
    if (ratio := result["ratio_all"]) is not None:
        verdict = "met" if ratio <= RATIO else "missed"
        tell(f"surefoot / none_all = {ratio:.2f} (goal at most {RATIO:g}: {verdict})")


def _tell_writes(name: str, members: int, created: Created, told: Told) -> None:
    """What the controller did for the gang, by the audit log and by its own metrics."""
    writes = told.writes
    if not writes:
        tell(f"{name}: the controller wrote to no member")
        return
    begun_s = min(each.begun_s for each in writes)
    wrote_s = max(each.ended_s for each in writes) - begun_s
    per_member, rate = len(writes) / members, members / wrote_s
    tell(
        f"{name}: first write {begun_s - created.last_s:.3f} s after the last create,"
        f" {per_member:.2f} writes a member"
        f" ({sum(not each.done for each in writes)} refused;"
        f" goal at most {WRITES_PER_MEMBER:g}: {_verdict(per_member <= WRITES_PER_MEMBER)}),"
        f" {rate:.0f} members/s (goal {MEMBERS_PER_S:g}: {_verdict(rate >= MEMBERS_PER_S)})"
    )
    grown = ", ".join(f"{key} {value:+.4g}" for key, value in sorted(told.figures.items()))
    tell(f"{name}: the controller's metrics: {grown or 'none of gangs'}")


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
