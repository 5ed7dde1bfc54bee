"""`surefoot put`: documents into the cache, as tests, scripts and foreign agents feed it."""

from __future__ import annotations

import time
from pathlib import Path

import click

from extender import wiring
from extender.cli import options
from extender.config import durations
from extender.store import documents
from extender.store.errors import DocumentError, StoreError
from extender.store.schema import Kind
from extender.store.writer import Put, Writer
from scoring.model import NodeName

STAMP_EVERY_S = 15.0


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return durations.parse_s(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command("put")
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
@click.option("--hold", is_flag=True, help="Keep stamping the nodes as seen until stopped.")
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
    not when it was is of now.

    Exit code 0: done. 1: the cache failed. 2: a document cannot be used.

    \b
    Example:
      surefoot put node.yaml --hold
      generate-documents | surefoot put - --seen-ago 90s
    """
    config = options.load_config(config_path, store__url=store_url)
    try:
        found = documents.parse(options.read_bytes(file), file)
    except DocumentError as error:
        options.fail(str(error))
    try:
        writer = Writer(wiring.store_settings(config))
        if delete:
            for document in found:
                gone = writer.delete(document.kind, document.id)
                click.echo(
                    f"{document.kind.value} {document.id} {'deleted' if gone else 'not there'}"
                )
            return
        _report(writer.put(found, sampled_s_ago=seen_ago))
        nodes = [NodeName(each.id) for each in found if each.kind is Kind.NODE]
        if hold and nodes:
            click.echo(f"stamping {len(nodes)} nodes every {STAMP_EVERY_S:.0f} s, Ctrl-C ends it")
            _hold(writer, nodes)
    except StoreError as error:
        options.fail(str(error), code=1)


def _report(results: list[Put]) -> None:
    for each in results:
        click.echo(f"{each.document.kind.value} {each.document.id} {each.outcome}")


def _hold(writer: Writer, nodes: list[NodeName]) -> None:
    try:
        while True:
            time.sleep(STAMP_EVERY_S)
            writer.stamp(nodes)
    except KeyboardInterrupt:
        return
