"""`surefoot put --hold`: nodes stay fresh, and documents stay in the cache, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from extender.ending import Ending
from extender.store.documents import Document
from extender.store.errors import StoreError
from extender.store.schema import Kind
from extender.store.writer import Writer
from scoring.model import NodeName

EVERY_S: Final = 15.0
FIRST_RETRY_S: Final = 1.0
"""After a failure; each further one waits twice as long, up to `EVERY_S`."""


def hold(writer: Writer, documents: Sequence[Document], ending: Ending) -> None:
    """Stamp the nodes as seen, and put again what the cache lost, until a signal ends it.

    A cache that fails is tried again and again; that it fails, and that it is back, is said once.
    """
    lasting = [each for each in documents if _lasts(each)]
    nodes = [NodeName(each.id) for each in documents if each.kind is Kind.NODE]
    failures = 0
    while not ending.within(_pause_s(failures)):
        try:
            lost = writer.missing(lasting)
            writer.put(lost)
            writer.stamp(nodes)
        except StoreError as error:
            if not failures:
                click.echo(f"{error}; trying again until it takes writes", err=True)
            failures += 1
            continue
        if failures:
            click.echo("the cache takes writes again", err=True)
        for each in lost:
            click.echo(f"{each.kind.value} {each.id} was gone, stored again", err=True)
        failures = 0


def _pause_s(failures: int) -> float:
    if not failures:
        return EVERY_S
    return min(EVERY_S, FIRST_RETRY_S * 2.0 ** min(failures - 1, 10))


def _lasts(document: Document) -> bool:
    """Whether it stays until it is removed: others go by themselves, and must not come back."""
    return document.kind is not Kind.REJECTION and document.body.get("until") is None
