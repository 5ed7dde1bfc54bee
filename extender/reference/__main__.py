"""`python -m extender.reference`: write the pages; `--check`: fail where one is out of date."""

from __future__ import annotations

import sys

import click

from extender.reference import DOCS, PAGES, stale


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; fail where a page is out of date.")
def main(*, check: bool) -> None:
    """Write the reference pages that come from the code."""
    old = stale()
    if check:
        for name in old:
            click.echo(f"docs/{name} is out of date, run `make docs`", err=True)
        sys.exit(1 if old else 0)
    for name in old:
        (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
        click.echo(f"docs/{name} written")


if __name__ == "__main__":
    main()
