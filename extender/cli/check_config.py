"""`surefoot check-config`: is this configuration sound, and what does it come to?"""

from __future__ import annotations

from pathlib import Path

import click
import yaml

from extender.cli import options


@click.command("check-config", short_help="Check a configuration and print it whole.")
@click.argument("file", type=options.CONFIG_FILE)
@click.option("--quiet", "-q", is_flag=True, help="Print nothing when it is sound.")
def command(file: Path, quiet: bool) -> None:
    """Check a configuration FILE (- is standard input) and print it with every default filled in.

    The password of store.url is printed as ***. Exit code 0: sound. 2: not, with one line for each
    mistake.

    \b
    Example:
      surefoot check-config surefoot.yaml
    """
    config = options.load_config(file)
    if not quiet:
        whole = config.model_dump(mode="json", by_alias=True)
        click.echo(yaml.safe_dump(whole, sort_keys=False), nl=False)
