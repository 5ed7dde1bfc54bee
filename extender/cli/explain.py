"""`surefoot explain`: why may this pod go to these nodes, or not?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import yaml

from extender import wiring
from extender.cli import options
from extender.config import durations, load
from extender.inspect.pod import ManifestError, read_pod
from extender.store import fleets
from extender.store.errors import StoreError
from extender.webhook import explanations
from extender.webhook.answers import unreported_reason
from extender.wire import asks
from extender.wire.errors import WireError
from scoring import picture
from scoring.model import NodeName


@click.command("explain", short_help="Say why a pod may go to each node, or not.")
@click.option(
    "--pod",
    "pod_file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="A Pod, YAML or JSON; - is standard input.",
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
def command(
    pod_file: str,
    names: tuple[str, ...],
    limit: int,
    config_path: Path | None,
    store_url: str | None,
    output: str,
) -> None:
    """Say why a pod may go to each node of the cache (or to those of NAMES), with evidence.

    Exit code 0: some node fits. 4: none does. 1: the cache failed. 2: usage.

    \b
    Example:
      kubectl get pod trainer-0 -o yaml | surefoot explain --pod -
    """
    config = options.load_config(config_path, store__url=store_url)
    policy = load.policy_of(config)
    try:
        ask = asks.ask_of(read_pod(options.read_bytes(pod_file)), policy)
        fleet, _ = fleets.look(wiring.store_settings(config))
    except (ManifestError, WireError) as error:
        options.fail(f"{pod_file}: {error}")
    except StoreError as error:
        options.fail(str(error), code=1)
    told = explanations.explanation(
        picture.picture(fleet, policy),
        ask,
        tuple(map(NodeName, names)) or None,
        unreported_reason(config.webhook.unknown_nodes, ask),
        decision="offline",
        limit=limit,
    )
    _print(told, output)
    if sum(told["counts"].values()) == len(names or fleet.nodes):
        sys.exit(4)


def _print(told: dict[str, Any], output: str) -> None:
    if output == "json":
        click.echo(json.dumps(told, ensure_ascii=False, indent=2))
        return
    if output == "yaml":
        click.echo(yaml.safe_dump(told, sort_keys=False, allow_unicode=True), nl=False)
        return
    click.echo(told["summary"])
    for note in told["ask"]["notes"]:
        click.echo(f"  note: {note}")
    for near in told["nearest"]:
        click.echo(f"  nearest: {near}")
    for name, node in told["nodes"].items():
        if node["verdict"] == "pass":
            parts = " ".join(f"{part} {value:.2f}" for part, value in (node["parts"] or {}).items())
            click.echo(f"{name}: fits, rank {node['rank']:.3f} ({parts or 'no document'})")
        else:
            click.echo(f"{name}: {node['text']}")
        for each in node["evidence"]:
            age = "" if each["age_s"] is None else f", {durations.ago(each['age_s'])}"
            click.echo(f"    {each['gpu'] or 'node'} {each['cause']}: {each['value']}{age}")
