"""`surefoot inspect`: what Surefoot understands of a text from a node or a pod, without a cluster."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import click

from extender.cli import options
from extender.config import load
from extender.config.model import SurefootConfig

KINDS: Final = {
    "topology": "an `nvidia-smi topo -m` text",
    "kmsg": "a kernel log",
    "metrics": "a dcgm-exporter page",
    "pod": "one Pod, YAML or JSON",
    "allocation": "a machine and an ask as JSON",
}


def _subcommand(kind: str, what: str) -> click.Command:
    @click.command(kind, short_help=f"Read {what}.")
    @click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, exists=True))
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @options.config_option
    def run(file: str, as_json: bool, config_path: Path | None) -> None:
        reader = importlib.import_module(f"extender.inspect.{kind}")
        report = reader.report(options.read_bytes(file), *_site(kind, config_path))
        if report is None:
            click.echo(f"error: {file}: nothing usable, this is not {what}", err=True)
            sys.exit(options.NOTHING_USABLE)
        click.echo(json.dumps(report, ensure_ascii=False) if as_json else reader.render(report))

    run.help = (
        f"Read {what} from FILE (- is standard input) and print what Surefoot understands.\n\n"
        "Exit code 0: usable. 3: nothing usable in it. 2: usage.\n\n"
        f"\b\nExample:\n  surefoot inspect {kind} FILE --json"
    )
    return run


def _site(kind: str, config_path: Path | None) -> tuple[object, ...]:
    """What of a site's configuration the reader of this kind takes."""
    if config_path is None or kind not in _TAKES:
        return ()
    return (_TAKES[kind](options.load_config(config_path)),)


_TAKES: Final[Mapping[str, Callable[[SurefootConfig], object]]] = {
    "kmsg": load.rules_of,
    "metrics": load.rules_of,
    "pod": load.policy_of,
}


@click.group("inspect", short_help="Say what is understood of a text.")
def command() -> None:
    """Read a text from a node or a pod and say what is understood.

    \b
    Example:
      nvidia-smi topo -m | surefoot inspect topology -
      dmesg | surefoot inspect kmsg - --json
    """


for _kind, _what in KINDS.items():
    command.add_command(_subcommand(_kind, _what))
