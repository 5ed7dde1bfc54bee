"""`surefoot check-config`: is this configuration sound, and what does it come to?"""

from __future__ import annotations

from pathlib import Path

import click
import yaml

from extender.cli import options


@click.command("check-config")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--quiet", "-q", is_flag=True, help="Print nothing when it is sound.")
def command(file: Path, quiet: bool) -> None:
    """Check a configuration FILE and print it with every default filled in.

    Exit code 0: sound. 2: not, with one line for each mistake.

    \b
    Example:
      surefoot check-config surefoot.yaml
    """
    config = options.load_config(file)
    if not quiet:
        whole = config.model_dump(mode="json", by_alias=True)
        click.echo(yaml.safe_dump(whole, sort_keys=False), nl=False)
