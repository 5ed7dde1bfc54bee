"""Options and endings that several subcommands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click

from extender.config import load
from extender.config.model import SurefootConfig

USAGE: Final = 2
NOTHING_USABLE: Final = 3

CONFIG_FILE: Final = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)

_F = TypeVar("_F", bound=Callable[..., Any])

config_option: Callable[[_F], _F] = click.option(
    "--config",
    "config_path",
    type=CONFIG_FILE,
    envvar="SUREFOOT_CONFIG",
    help="Configuration file; docs/configuration.md lists every field. [env: SUREFOOT_CONFIG]",
)

store_option: Callable[[_F], _F] = click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="Redis or Valkey with the cache, instead of the configuration's `store`.",
)

output_option: Callable[[_F], _F] = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How to print.",
)


def load_config(path: Path | None, **overrides: str | None) -> SurefootConfig:
    """The configuration, or an end with exit code 2 that lists each mistake.

    `overrides` are words of the command line, as `store__url="redis://..."`; None: not given.
    """
    environment = dict(os.environ)
    for name, value in overrides.items():
        if value is not None:
            environment[f"{load.PREFIX}{name.upper()}"] = value
    try:
        return load.load(path, environment)
    except load.ConfigError as error:
        fail(*error.problems)


def fail(*problems: str, code: int = USAGE) -> NoReturn:
    """Print each problem on standard error and end."""
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    sys.exit(code)


def read_bytes(path: str, largest: int = 64 << 20) -> bytes:
    """The content of a file, `-` for standard input, or an end with exit code 2."""
    try:
        with click.open_file(path, "rb") as stream:
            data: bytes = stream.read(largest + 1)
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    if len(data) > largest:
        fail(f"{path}: larger than {largest >> 20} MiB")
    return data
