"""`surefoot explain`: why may this pod go to these nodes, or not? How far is this gang, and why?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from extender import wiring
from extender.cli import explained, options
from extender.config import load
from extender.config.model import SurefootConfig
from extender.inspect.pod import ManifestError, read_pod
from extender.store import fleets
from extender.store.errors import StoreError
from extender.webhook import explanations, gangs
from extender.webhook.answers import unreported_reason
from extender.wire import asks
from extender.wire.errors import WireError
from scoring import picture
from scoring.gangs import telling
from scoring.gangs.record import GangState
from scoring.model import Ask, Convention, Fleet, GangKey, NodeName
from scoring.policy import Policy


@click.command("explain", short_help="Say why a pod may go to each node, or how far a gang is.")
@click.option(
    "--pod",
    "pod_file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="A Pod, YAML or JSON; - is standard input.",
)
@click.option("--gang", "gang", metavar="NAMESPACE/NAME", help="A gang instead of a pod.")
@click.option(
    "--convention",
    type=click.Choice([each.value for each in Convention]),
    help="With --gang, where two conventions use its name.",
)
@click.argument("names", nargs=-1)
@click.option(
    "--limit",
    default=explanations.LIMIT,
    show_default=True,
    type=click.IntRange(0),
    help="How many nodes to tell in full, vetoed ones first.",
)
@options.config_option
@options.store_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How to print.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as -o json.")
def command(
    pod_file: str | None,
    gang: str | None,
    convention: str | None,
    names: tuple[str, ...],
    limit: int,
    config_path: Path | None,
    store_url: str | None,
    output: str,
    as_json: bool,
) -> None:
    """Say why a pod may go to each node of the cache (or to those of NAMES), with evidence; or
    what a gang has come to, and what would unblock it.

    Exit code 0: some node fits, or the gang has a plan. 4: none does, or it has none. 1: the cache
    failed, or there is no word on such a gang. 2: usage.

    \b
    Example:
      kubectl get pod trainer-0 -o yaml | surefoot explain --pod -
      surefoot explain --gang ml/trainer
    """
    if (pod_file is None) == (gang is None):
        options.fail("name one pod with --pod, or one gang with --gang")
    if gang is None and convention is not None:
        options.fail("--convention goes with --gang")
    if gang is not None and names:
        options.fail("nodes are named with --pod only")
    config = options.load_config(config_path, store__url=store_url)
    policy = load.policy_of(config)
    form = "json" if as_json else output
    if pod_file is not None:
        _explain_pod(config, policy, pod_file, tuple(map(NodeName, names)), limit, form)
    elif gang is not None:
        _explain_gang(config, policy, GangKey(gang), convention, form)


def _explain_pod(
    config: SurefootConfig,
    policy: Policy,
    file: str,
    names: tuple[NodeName, ...],
    limit: int,
    form: str,
) -> None:
    try:
        ask: Ask = asks.ask_of(read_pod(options.read_bytes(file)), policy)
    except (ManifestError, WireError) as error:
        options.fail(f"{file}: {error}")
    fleet = _look(config)
    told = explanations.explanation(
        picture.picture(fleet, policy),
        ask,
        names or None,
        unreported_reason(config.webhook.unknown_nodes, ask),
        config.gangs.rules,
        decision="offline",
        limit=limit,
    )
    explained.show(told, form, explained.pod)
    if sum(told["counts"].values()) == len(names or fleet.nodes):
        sys.exit(4)


def _explain_gang(
    config: SurefootConfig, policy: Policy, key: GangKey, convention: str | None, form: str
) -> None:
    fleet = _look(config)
    plan = gangs.find(fleet, key, Convention(convention) if convention else None)
    if plan is None:
        options.fail(telling.absence(fleet, key, policy), code=1)
    told: dict[str, Any] = gangs.whole(fleet, policy, plan)
    explained.show(told, form, explained.gang)
    if plan.state in (GangState.WAITING, GangState.PARTIAL):
        sys.exit(4)


def _look(config: SurefootConfig) -> Fleet:
    try:
        fleet, _ = fleets.look(wiring.store_settings(config))
    except StoreError as error:
        options.fail(str(error), code=1)
    return fleet
