"""`surefoot get`: what the cache says, as Surefoot judges it now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from extender import wiring
from extender.cli import options, printing
from extender.config import durations, load
from extender.store import fleets
from extender.store.errors import StoreError
from extender.webhook import gangs as records
from scoring import candidate, rings, verdict
from scoring.candidate import Candidate
from scoring.gangs import telling
from scoring.gangs.record import GangPlan, GangState
from scoring.health.staleness import Freshness
from scoring.model import Fleet, GangKey, Health, OverrideVerdict
from scoring.policy import Policy

NODE_COLUMNS: Final = ("name", "state", "gpus", "free", "seen", "causes")
NODE_WIDE: Final = (*NODE_COLUMNS, "mode", "islands", "override", "epoch", "seq")
GANG_COLUMNS: Final = ("key", "state", "bound", "seated", "existing", "min", "age", "summary")
GANG_WIDE: Final = (*GANG_COLUMNS, "size", "domain", "convention", "hold")
GPU_COLUMNS: Final = ("node", "index", "state", "causes", "held", "uuid")
GPU_WIDE: Final = (*GPU_COLUMNS, "model", "pci", "numa", "mig", "override", "evidence")


@click.group("get", short_help="Print nodes, GPUs or gangs of the cache, as judged now.")
def command() -> None:
    """Print nodes, GPUs or gangs of the cache with their state, as it is judged now.

    \b
    Example:
      surefoot get nodes
      surefoot get gpus gpu-17 -o wide
      surefoot get gangs --state waiting
    """


def _look(config_path: Path | None, store_url: str | None) -> tuple[Fleet, Policy]:
    config = options.load_config(config_path, store__url=store_url)
    try:
        fleet, _ = fleets.look(wiring.store_settings(config))
    except StoreError as error:
        options.fail(str(error), code=1)
    for name, problem in sorted(fleet.quarantined.items()):
        click.echo(f"quarantined: {name}: {problem}", err=True)
    return fleet, load.policy_of(config)


@command.command("nodes")
@click.argument("names", nargs=-1)
@options.config_option
@options.store_option
@options.output_option
def nodes(
    names: tuple[str, ...], config_path: Path | None, store_url: str | None, output: str
) -> None:
    """Print every node of the cache, or those of NAMES.

    \b
    Example:
      surefoot get nodes -o wide
    """
    _print(_node_row, names, config_path, store_url, output, (NODE_COLUMNS, NODE_WIDE))


@command.command("gpus")
@click.argument("names", nargs=-1)
@options.config_option
@options.store_option
@options.output_option
def gpus(
    names: tuple[str, ...], config_path: Path | None, store_url: str | None, output: str
) -> None:
    """Print every GPU of the cache, or those of the nodes NAMES.

    \b
    Example:
      surefoot get gpus gpu-17
    """
    _print(_gpu_rows, names, config_path, store_url, output, (GPU_COLUMNS, GPU_WIDE))


@command.command("gangs")
@click.argument("keys", nargs=-1, metavar="[NAMESPACE/NAME]...")
@click.option(
    "--state", type=click.Choice([each.value for each in GangState]), help="Only those in it."
)
@options.config_option
@options.store_option
@options.output_option
def gangs(
    keys: tuple[str, ...],
    state: str | None,
    config_path: Path | None,
    store_url: str | None,
    output: str,
) -> None:
    """Print every gang that the controller plans, or those named NAMESPACE/NAME.

    \b
    Example:
      surefoot get gangs --state waiting
    """
    fleet, policy = _look(config_path, store_url)
    named = {GangKey(key): records.find(fleet, GangKey(key), None) for key in keys}
    missing = [key for key, plan in named.items() if plan is None]
    if missing:
        options.fail(*(telling.absence(fleet, key, policy) for key in missing), code=1)
    chosen = records.chosen(fleet, GangState(state) if state else None)
    found = [_gang_row(fleet, plan) for plan in chosen if not named or plan in named.values()]
    printing.rows(found, GANG_WIDE if output == "wide" else GANG_COLUMNS, output)


def _print(
    rows_of: Callable[[Fleet, Candidate], list[dict[str, Any]]],
    names: tuple[str, ...],
    config_path: Path | None,
    store_url: str | None,
    output: str,
    columns: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    fleet, policy = _look(config_path, store_url)
    ready = candidate.candidates(fleet, policy)
    missing = [name for name in names if name not in ready]
    if missing:
        options.fail(*(f"node {name} is not in the cache" for name in missing), code=1)
    chosen = [each for name, each in sorted(ready.items()) if not names or name in names]
    found = [row for each in chosen for row in rows_of(fleet, each)]
    printing.rows(found, columns[output == "wide"], output)


def _node_row(fleet: Fleet, ready: Candidate) -> list[dict[str, Any]]:
    node = ready.node
    causes = sorted({cause.id for open_causes in ready.causes for cause in open_causes})
    states = [_state(ready, position) for position in range(len(node.gpus))]
    states.append(verdict.worst_of(ready.of_node))
    return [
        {
            "name": node.name,
            "state": max(states, default=Health.HEALTHY).name,
            "gpus": len(node.gpus),
            "free": ready.free.bit_count() - ready.nameless,
            "seen": _seen(fleet, ready),
            "causes": causes,
            "mode": node.mode.value,
            "islands": len(rings.islands(node.links)),
            "override": _word(fleet, f"node/{node.name}"),
            "epoch": node.epoch,
            "seq": node.seq,
        }
    ]


def _gpu_rows(fleet: Fleet, ready: Candidate) -> list[dict[str, Any]]:
    return [
        {
            "node": ready.node.name,
            "index": gpu.index,
            "state": _state(ready, position).name,
            "causes": [cause.id for cause in ready.causes[position]],
            "held": bool(ready.held >> position & 1),
            "uuid": gpu.uuid,
            "model": gpu.model,
            "pci": gpu.pci,
            "numa": gpu.numa,
            "mig": gpu.mig,
            "override": _word(fleet, f"gpu/{gpu.uuid}"),
            "evidence": [cause.evidence for cause in ready.causes[position] if cause.evidence],
        }
        for position, gpu in enumerate(ready.node.gpus)
    ]


def _gang_row(fleet: Fleet, plan: GangPlan) -> dict[str, Any]:
    told = records.row(fleet, plan)
    return {**told, "age": durations.show(round(told["age_s"]))}


def _state(ready: Candidate, position: int) -> Health:
    """The state shown: that of the causes, whatever an operator said; the override is shown too."""
    states = [cause.state for cause in ready.causes[position]]
    if ready.freshness is Freshness.SILENT:
        states.append(Health.UNKNOWN)
    return max(states, default=Health.HEALTHY)


def _seen(fleet: Fleet, ready: Candidate) -> str:
    seen_s = fleet.seen_s.get(ready.node.name)
    if seen_s is None:
        return "never"
    mark = "" if ready.freshness is Freshness.FRESH else f" ({ready.freshness.value})"
    return f"{durations.ago(fleet.now_s - seen_s)}{mark}"


def _word(fleet: Fleet, target: str) -> str | None:
    word = fleet.overrides.get(target)
    if word is None:
        return None
    verb = "allowed" if word.verdict is OverrideVerdict.ALLOW else "denied"
    return f"{verb} by {word.who}: {word.why}"
