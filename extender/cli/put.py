"""`surefoot put`: documents into the cache, as tests, scripts and foreign agents feed it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from extender import wiring
from extender.cli import hold as holding
from extender.cli import notes, options
from extender.config import durations
from extender.ending import Ending
from extender.store import documents
from extender.store.documents import Document, Identity
from extender.store.errors import DocumentError, StoreError
from extender.store.schema import Kind
from extender.store.writer import Writer

_T = TypeVar("_T")


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return durations.parse_s(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command("put", short_help="Store documents in the cache, or remove them.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@options.config_option
@options.store_option
@click.option(
    "--seen-ago",
    type=_Duration(),
    default="0",
    metavar="DURATION",
    help="Say that the nodes' last full sample is this old, like 90s.",
)
@click.option(
    "--hold",
    is_flag=True,
    help="Keep stamping the nodes as seen, and put again what the cache loses, until stopped.",
)
@click.option("--delete", is_flag=True, help="Remove the documents instead.")
def command(
    file: str,
    config_path: Path | None,
    store_url: str | None,
    seen_ago: float,
    hold: bool,
    delete: bool,
) -> None:
    """Store the documents in FILE (- is standard input; YAML or JSON, one or many).

    Kinds: Node, Allocation, Gang, Override, Breaker, Rejection of surefoot.dev/v1
    (docs/documents.md). Nothing is stored when any of them cannot be used. A Rejection that says
    not when it was is of now. What has no effect is noted on standard error.

    A node that nobody stamps is stale after a minute: --hold stamps it every 15 s. To --delete, what
    tells a document apart is enough: kind, and of a Node its name.

    Exit code 0: done. 1: the cache failed. 2: a document cannot be used.

    \b
    Example:
      surefoot put node.yaml --hold
      generate-documents | surefoot put - --seen-ago 90s
    """
    if hold and delete:
        raise click.UsageError("--hold keeps documents and --delete removes them: take one of them")
    config = options.load_config(config_path, store__url=store_url)
    found = _bodies(file)
    try:
        if delete:
            named = _each(found, documents.identify)
            _delete(Writer(wiring.store_settings(config)), named)
        else:
            checked = _each(found, documents.check)
            _put(Writer(wiring.store_settings(config)), checked, seen_ago, hold)
    except StoreError as error:
        options.fail(str(error), code=1)


def _bodies(file: str) -> list[tuple[str, Any]]:
    """Each document with its place in the file, or an end with exit code 2."""
    try:
        found = documents.bodies(options.read_bytes(file), file)
    except DocumentError as error:
        options.fail(str(error))
    if not found:
        click.echo(f"note: {file}: no document in it", err=True)
    return found


def _each(found: Sequence[tuple[str, Any]], read: Callable[[Any, str], _T]) -> list[_T]:
    """What `read` makes of each document, or an end that names all that cannot be used."""
    made, problems = [], []
    for place, body in found:
        try:
            made.append(read(body, place))
        except DocumentError as error:
            problems.append(str(error))
    if problems:
        options.fail(*problems)
    return made


def _delete(writer: Writer, named: Sequence[Identity]) -> None:
    for each in named:
        gone = writer.delete(each.kind, each.id)
        click.echo(f"{each.kind.value} {each.id} {'deleted' if gone else 'not there'}")


def _put(writer: Writer, found: Sequence[Document], seen_ago_s: float, hold: bool) -> None:
    for put in writer.put(found, sampled_s_ago=seen_ago_s):
        name = f"{put.document.kind.value} {put.document.id}"
        click.echo(f"{name} {put.outcome}")
        for note in notes.notes(put.document, time.time()):
            click.echo(f"note: {name}: {note}", err=True)
    if not hold:
        return
    nodes = sum(each.kind is Kind.NODE for each in found)
    if not nodes:
        click.echo("note: no Node to hold", err=True)
        return
    told = "1 node" if nodes == 1 else f"{nodes} nodes"
    with Ending() as ending:
        click.echo(f"stamping {told} every {holding.EVERY_S:.0f} s, Ctrl-C ends it")
        holding.hold(writer, found, ending)
