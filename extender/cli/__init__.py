"""The `surefoot` command. Each subcommand is a module, imported only when it is called."""

from __future__ import annotations

import importlib
from typing import Final

import click

from extender.version import VERSION

COMMANDS: Final = {
    "serve": "extender.cli.serve",
    "controller": "extender.cli.controller",
    "put": "extender.cli.put",
    "get": "extender.cli.get",
    "explain": "extender.cli.explain",
    "gates": "extender.cli.gates",
    "inspect": "extender.cli.inspect",
    "check-config": "extender.cli.check_config",
    "render-config": "extender.cli.render_config",
    "demo": "extender.cli.demo",
}
"""Where each subcommand lives; every module has a `command`."""


class _Lazy(click.Group):
    """A group that imports a subcommand when it is named: `inspect` must not wait for Flask."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        return command


@click.command(
    cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(VERSION, prog_name="surefoot")
def main() -> None:
    """Keep gangs off degraded GPUs: a kube-scheduler extender with a memory of GPU health."""
