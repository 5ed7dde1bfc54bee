"""`surefoot gates`: the pods that Surefoot's scheduling gate holds, shown and let go by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from extender.cli import options, printing
from extender.config import durations
from extender.kube.errors import KubeError

if TYPE_CHECKING:
    from extender.kube.gates import Gates, Held

COLUMNS: Final = ("pod", "gang", "age")
WIDE: Final = (*COLUMNS, "gates")
FAILED: Final = 1

_F = TypeVar("_F", bound=Callable[..., Any])


def _cluster_options(function: _F) -> _F:
    for add in (
        click.option("--context", help="Context of the kubeconfig, instead of kube.context."),
        click.option(
            "--kubeconfig",
            type=click.Path(dir_okay=False),
            help="How to reach the API server, instead of kube.kubeconfig.",
        ),
        options.config_option,
    ):
        function = add(function)
    return function


@click.group("gates", short_help="Show or release the pods that wait behind Surefoot's gate.")
def command() -> None:
    """Show the pods that the scheduling gate surefoot.dev/gang holds, or let them go without a plan,
    as where the controller is gone. Neither the controller nor the cache is needed.

    For one pod, kubectl does the same:

    \b
      kubectl patch pod NAME -n NAMESPACE --type=strategic \\
        -p '{"spec":{"schedulingGates":[{"$patch":"delete","name":"surefoot.dev/gang"}]}}'

    \b
    Example:
      surefoot gates list
      surefoot gates release --gang lab/train
      surefoot gates release --all --dry-run
    """


@command.command("list")
@_cluster_options
@options.output_option
def list_(
    config_path: Path | None, kubeconfig: str | None, context: str | None, output: str
) -> None:
    """Print every pod that the gate holds, with its gang.

    Exit code 0: done, also where there is none. 1: the API server failed. 2: usage.

    \b
    Example:
      surefoot gates list -o wide
    """
    with _gates(config_path, kubeconfig, context) as gates:
        found = [_row(pod, time.time()) for pod in gates.held()]
    printing.rows(found, WIDE if output == "wide" else COLUMNS, output)


@command.command("release")
@click.option("--all", "everything", is_flag=True, help="Let all pods go.")
@click.option("--gang", metavar="NAMESPACE/NAME", help="Let the pods of this gang go.")
@click.option("--dry-run", is_flag=True, help="Say which pods that would be, and change nothing.")
@_cluster_options
def release(
    config_path: Path | None,
    kubeconfig: str | None,
    context: str | None,
    gang: str | None,
    *,
    everything: bool,
    dry_run: bool,
) -> None:
    """Remove the gate from pods, so that kube-scheduler places them one by one, without a plan. Gates
    of others stay.

    A controller that runs and leads does not bring the gate back.

    Exit code 0: none of these pods is held any more, or --dry-run. 1: the API server failed, for
    some of them at least. 2: usage.

    \b
    Example:
      surefoot gates release --all
      surefoot gates release --gang lab/train
    """
    if everything == (gang is not None):
        options.fail("say either --all or --gang NAMESPACE/NAME")
    if gang is not None and not all(gang.partition("/")):
        options.fail(f"--gang {gang}: must be NAMESPACE/NAME")
    with _gates(config_path, kubeconfig, context) as gates:
        found = [pod for pod in gates.held() if everything or pod.gang == gang]
        if dry_run:
            for pod in found:
                click.echo(f"{pod.key} would be released")
            click.echo(f"{_pods(len(found))} would be released")
        elif failures := _release(found, gates):
            options.fail(f"{_pods(failures)} could not be released", code=FAILED)


def _release(found: list[Held], gates: Gates) -> int:
    """How many failed; each pod is told."""
    released = failures = 0
    for pod in found:
        try:
            done = gates.release(pod)
        except KubeError as error:
            click.echo(f"{pod.key}: {error}", err=True)
            failures += 1
            continue
        click.echo(f"{pod.key} {'released' if done else 'is free already'}")
        released += done
    click.echo(f"{_pods(released)} released")
    return failures


@contextmanager
def _gates(
    config_path: Path | None, kubeconfig: str | None, context: str | None
) -> Iterator[Gates]:
    """The cluster that the options name, or an end with exit code 1 or 2."""
    config = options.load_config(config_path, kube__kubeconfig=kubeconfig, kube__context=context)
    from extender.kube.gates import Gates  # noqa: PLC0415 - half a second of imports, for which the help of all commands must not wait
    from extender.kube.settings import KubeSettings  # noqa: PLC0415

    file = config.kube.kubeconfig
    settings = KubeSettings(kubeconfig=Path(file) if file else None, context=config.kube.context)
    try:
        with Gates(settings) as gates:
            yield gates
    except KubeError as error:
        options.fail(str(error), code=FAILED)


def _row(pod: Held, now_s: float) -> dict[str, Any]:
    age = None if pod.created_s is None else durations.show(round(max(1.0, now_s - pod.created_s)))
    return {"pod": pod.key, "gang": pod.gang, "age": age, "gates": list(pod.gates)}


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"
