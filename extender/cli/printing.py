"""Tables, JSON and YAML on standard output."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
import yaml


def rows(found: Sequence[Mapping[str, Any]], columns: Sequence[str], output: str) -> None:
    """Print one row for each of `found`; JSON and YAML print every field, tables `columns`."""
    if output == "json":
        click.echo(json.dumps(list(found), ensure_ascii=False, indent=2))
        return
    if output == "yaml":
        click.echo(yaml.safe_dump(list(found), sort_keys=False, allow_unicode=True), nl=False)
        return
    heads = [column.upper() for column in columns]
    cells = [[_cell(row[column]) for column in columns] for row in found]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    for line in (heads, *cells):
        text = "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo(text.rstrip())


def _cell(value: object) -> str:
    if value is None or value in ("", []):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)
