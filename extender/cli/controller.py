"""`surefoot controller`: what the API server knows of pods and nodes, kept in the cache."""

from __future__ import annotations

from pathlib import Path

import click

from extender.cli import options
from extender.ending import Ending
from extender.listening import BindError


@click.command("controller", short_help="Keep pods' GPUs and nodes' labels in the cache.")
@options.config_option
@options.store_option
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False),
    help="How to reach the API server, instead of kube.kubeconfig.",
)
@click.option("--context", help="Context of the kubeconfig, instead of kube.context.")
@click.option(
    "--bind", metavar="HOST:PORT", help="Address of its pages, instead of controller.bind."
)
def command(
    config_path: Path | None,
    store_url: str | None,
    kubeconfig: str | None,
    context: str | None,
    bind: str | None,
) -> None:
    """Follow the pods and nodes of a cluster, and keep in the cache which GPUs are held, and what the
    API server says of each node (docs/controller.md).

    Serves /livez, /readyz and /metrics. Exit code 0: ended by SIGTERM or SIGINT. 1: the address
    cannot be had, or nothing says where the API server is. 2: usage.

    \b
    Example:
      surefoot controller --kubeconfig ~/.kube/config --store redis://localhost:6379/0
    """
    config = options.load_config(
        config_path,
        store__url=store_url,
        kube__kubeconfig=kubeconfig,
        kube__context=context,
        controller__bind=bind,
    )
    from extender import wiring  # noqa: PLC0415 - after the configuration is known to be sound
    from extender.kube.errors import KubeError  # noqa: PLC0415

    with Ending() as ending:
        try:
            wiring.control(config, ending)
        except (BindError, KubeError) as error:
            options.fail(str(error), code=1)
