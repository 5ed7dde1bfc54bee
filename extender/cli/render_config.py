"""`surefoot render-config`: the files that put Surefoot in front of a kube-scheduler."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from extender.cli import options
from extender.config.model import FailurePolicy
from extender.rendering import files
from extender.rendering.kustomization import kustomization_page
from extender.rendering.shapes import Name
from extender.rendering.site import KUBECONFIG, Site, SiteError, named_by_dns, resources_of, site

_PRINTS: Final[Mapping[str, str]] = {"kube-scheduler": "{}.yaml", "surefoot": "surefoot/{}.yaml"}
"""What `--for` prints."""
_OF_ONE: Final = ("service", "policy", "registry")
"""Wishes that cannot hold for every profile."""


@click.command("render-config", short_help="Write the files for kube-scheduler and Surefoot.")
@click.option(
    "--profile",
    "names",
    type=click.Choice([each.value for each in Name]),
    multiple=True,
    help="The kind of set-up; may be repeated with -o.  [default: extender; with -o: all]",
)
@click.option(
    "--resource",
    "resources",
    metavar="NAME",
    multiple=True,
    help="A resource that pods ask GPUs by; repeat it for each MIG profile.  [default: nvidia.com/gpu]",
)
@click.option(
    "--nodes",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Take the resources that `kubectl get nodes -o json` shows; - is standard input.",
)
@click.option("--service", metavar="URL", help="Where kube-scheduler reaches Surefoot.")
@click.option(
    "--policy",
    type=click.Choice([each.value for each in FailurePolicy]),
    help="While Surefoot cannot judge: open lets GPU pods pass, closed lets them wait.",
)
@click.option(
    "--kubeconfig",
    metavar="PATH",
    default=KUBECONFIG,
    show_default=True,
    help="As kube-scheduler sees it.",
)
@click.option("--registry", metavar="PREFIX", help="Where the images are, for -o with one profile.")
@click.option(
    "--kustomize",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("deploy/kustomize"),
    show_default=True,
    help="That folder of a checkout, for the kustomization.yaml of -o with one profile.",
)
@click.option(
    "--for",
    "reader",
    type=click.Choice([*_PRINTS]),
    default="kube-scheduler",
    show_default=True,
    help="Whose file to print, without -o.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write all files into this folder instead.",
)
def command(
    *,
    names: tuple[str, ...],
    resources: tuple[str, ...],
    nodes: str | None,
    policy: str | None,
    kustomize: Path,
    reader: str,
    output: Path | None,
    **wishes: Any,
) -> None:
    """Write kube-scheduler's file for a site, and Surefoot's that goes with it.

    Each line says why it is there; docs/scheduler.md says which profile is for whom. With -o and one
    profile there is also a kustomization.yaml, ready for `kubectl apply -k`.

    Exit code 0: done. 1: the folder cannot be written. 2: usage.

    \b
    Example:
      surefoot render-config --resource nvidia.com/gpu --resource nvidia.com/mig-1g.10gb
      kubectl get nodes -o json | surefoot render-config --profile tls --nodes - -o site
    """
    wanted = [Name(name) for name in names] or ([*Name] if output else [Name.EXTENDER])
    wishes["policy"] = FailurePolicy(policy) if policy else None
    if len(wanted) > 1:
        if output is None:
            options.fail("several of --profile need a folder, -o DIR")
        if said := [f"--{word}" for word in _OF_ONE if wishes[word] is not None]:
            options.fail(f"{', '.join(said)}: for one profile only, name it with --profile")
    try:
        found = (*resources, *(_resources(nodes) if nodes is not None else ()))
        sites = [site(name, resources=found, **wishes) for name in wanted]
        texts = _texts(output, sites, kustomize) if output is not None else {}
    except SiteError as error:
        options.fail(str(error))
    if output is None:
        if wishes["registry"] is not None:
            options.fail("--registry: only manifests have images, write them with -o DIR")
        click.echo(files.pair(sites[0])[_PRINTS[reader].format(sites[0].name)], nl=False)
    else:
        _write(output, texts)
    if named_by_dns(sites[0].service):
        click.echo(
            f"note: {sites[0].service} is a name of the cluster's DNS, which a static pod does not "
            "ask; there give the ClusterIP of the Service",
            err=True,
        )


def _resources(path: str) -> tuple[str, ...]:
    data = options.read_bytes(path)
    try:
        nodes = json.loads(data)
    except (ValueError, RecursionError):
        options.fail(f"{path}: not JSON, give the output of kubectl get nodes -o json")
    return resources_of(nodes)


def _texts(folder: Path, sites: Sequence[Site], kustomize: Path) -> Mapping[str, str]:
    texts = {name: text for each in sites for name, text in files.pair(each).items()}
    if len(sites) == 1:
        way = os.path.relpath(kustomize, folder)
        texts["kustomization.yaml"] = kustomization_page(sites[0], way)
    return texts


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    try:
        for name, text in texts.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            click.echo(f"{file} written", err=True)
    except OSError as error:
        options.fail(f"{error.filename}: {error.strerror}", code=1)
