"""`python -m extender.rendering`: write the files below deploy/; `--check`: fail where one is out of
date.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from extender.rendering.files import DEPLOY, shipped, stale


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; fail where a file is out of date.")
@click.option(
    "--deploy",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=DEPLOY,
    help="Where the files are, instead of deploy/.",
)
def main(*, check: bool, deploy: Path) -> None:
    """Write the files below deploy/ that `surefoot render-config` renders."""
    old = stale(deploy)
    if check:
        for name in old:
            click.echo(f"deploy/{name} is out of date, run `make docs`", err=True)
        sys.exit(1 if old else 0)
    for name in old:
        file = deploy / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(shipped()[name], encoding="utf-8")
        click.echo(f"deploy/{name} written")


if __name__ == "__main__":
    main()
