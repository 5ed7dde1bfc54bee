"""How `surefoot explain` prints what it found, for people and for tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import click
import yaml

from extender.cli import printing
from extender.config import durations
from scoring.gangs import telling

MEMBER_COLUMNS: Final = ("pod", "node", "bound")


def show(told: dict[str, Any], form: str, text: Callable[[dict[str, Any]], None]) -> None:
    """Print `told` as `json` or `yaml`, or as `text` does."""
    if form == "json":
        click.echo(json.dumps(told, ensure_ascii=False, indent=2))
    elif form == "yaml":
        click.echo(yaml.safe_dump(told, sort_keys=False, allow_unicode=True), nl=False)
    else:
        text(told)


def pod(told: dict[str, Any]) -> None:
    """The answer of /explain: a sentence, then each node."""
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


def gang(told: dict[str, Any]) -> None:
    """The answer of /gangs: a sentence, what keeps it from nodes and what would help, its members."""
    click.echo(told["summary"])
    needs = "?" if told["min"] is None else told["min"]
    click.echo(
        f"  {told['state']} for {durations.show(round(told['age_s']))}: {told['existing']} pods,"
        f" {needs} needed, {told['seated']} with a node, {told['bound']} bound"
    )
    if not told["leader"]["live"] and told["leader"]["age_s"] is not None:
        click.echo("  note: no controller leads, this is the last one's word")
    for word, count in told["counts"].items():
        click.echo(f"  {count} nodes: {telling.bar(word)}")
    if told["nearest"]:
        click.echo(f"  nearest: {told['nearest']}")
    for way in told["unblock"]:
        click.echo(f"  unblock: {way}")
    if told["members"]:
        printing.rows(told["members"], MEMBER_COLUMNS, "table")
