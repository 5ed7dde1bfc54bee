"""`python -m extender.reference`: write the pages; `--check`: fail where one is out of date."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from extender.reference import DOCS, PAGES, stale


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; fail where a page is out of date.")
@click.option(
    "--docs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=DOCS,
    help="Where the pages are, instead of docs/.",
)
def main(*, check: bool, docs: Path) -> None:
    """Write the reference pages that come from the code."""
    old = stale(docs)
    if check:
        for name in old:
            click.echo(f"docs/{name} is out of date, run `make docs`", err=True)
        sys.exit(1 if old else 0)
    for name in old:
        (docs / name).write_text(PAGES[name](), encoding="utf-8")
        click.echo(f"docs/{name} written")


if __name__ == "__main__":
    main()
