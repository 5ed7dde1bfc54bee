"""The kustomization that lays a site's files and registry over deploy/kustomize."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from extender.rendering.address import address_patch
from extender.rendering.lines import Block, Items, Line, Words, page
from extender.rendering.scheduler import NAMESPACE
from extender.rendering.shapes import Name
from extender.rendering.site import Site

_OVERLAYS: Final[Mapping[Name, str]] = {
    Name.SECONDARY: "overlays/secondary",
    Name.TLS: "overlays/tls",
    Name.OBSERVE: "overlays/observe",
}
"""What of deploy/kustomize a profile needs beyond `base`."""
_IMAGES: Final = ("surefoot", "valkey")
_OF_LEASE: Final = ("kube-scheduler",)


def kustomization_page(site: Site, kustomize: str) -> str:
    """`kustomization.yaml` beside the site's two files.

    `kustomize`: the way from there to deploy/kustomize of a checkout.

    Raises:
        SiteError: the Service cannot be where kube-scheduler's file says.
    """
    files: tuple[str, ...] = (f"surefoot.yaml=surefoot/{site.name}.yaml",)
    if site.shape.lease:
        files = (f"kube-scheduler.yaml={site.name}.yaml", *files)
    generator = (
        Line("name", "surefoot"),
        Line("namespace", NAMESPACE),
        Line("behavior", "replace"),
        Line("files", Words(files)),
    )
    return page(
        f"`kubectl apply -k` this folder.\n\n{site.command}",
        (
            Line("apiVersion", "kustomize.config.k8s.io/v1beta1"),
            Line("kind", "Kustomization"),
            Line("resources", Words((f"{kustomize}/{_OVERLAYS.get(site.name, 'base')}",))),
            Line("configMapGenerator", Items((generator,)), "These files instead of the shipped."),
            *address_patch(site),
            *_images(site),
        ),
    )


def _images(site: Site) -> Block:
    if site.registry is None:
        return ()
    names = (*_IMAGES, *(_OF_LEASE if site.shape.lease else ()))
    rows = tuple((Line("name", name), Line("newName", f"{site.registry}/{name}")) for name in names)
    return (Line("images", Items(rows), "Manifests have bare names; this is where yours are."),)
