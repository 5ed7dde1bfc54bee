"""`surefoot serve`: the extender that kube-scheduler asks."""

from __future__ import annotations

from pathlib import Path

import click

from extender.cli import options
from extender.listening import BindError


@click.command("serve", short_help="Serve kube-scheduler.")
@options.config_option
@options.store_option
@click.option("--bind", metavar="HOST:PORT", help="Address to listen on, instead of webhook.bind.")
def command(config_path: Path | None, store_url: str | None, bind: str | None) -> None:
    """Serve /filter, /prioritize and /preempt to kube-scheduler, and /explain to people.

    Exit code 0: ended by SIGTERM or SIGINT. 1: the address cannot be had, or a certificate not be
    used. 2: usage.

    \b
    Example:
      surefoot serve --config surefoot.yaml --bind 0.0.0.0:8888
    """
    config = options.load_config(config_path, store__url=store_url, webhook__bind=bind)
    from extender import wiring  # noqa: PLC0415 - loads gunicorn and Flask, after the configuration is known to be sound
    from extender.webhook.tls import TlsError  # noqa: PLC0415

    try:
        wiring.serve(config)
    except (BindError, TlsError) as error:
        options.fail(str(error), code=1)
