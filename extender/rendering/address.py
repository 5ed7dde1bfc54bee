"""The address of the Service, as a site's kube-scheduler is told it."""

from __future__ import annotations

import json
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from extender.rendering.lines import Block, Items, Line
from extender.rendering.scheduler import SERVER_NAME
from extender.rendering.site import Site, SiteError

_PORT: Final = 8888
"""Of the Service in deploy/kustomize/base."""
_WELL_KNOWN: Final = {"http": 80, "https": 443}


def address_patch(site: Site) -> Block:
    """`patches` of a kustomization that give the Service the address in kube-scheduler's file.

    Without them the two would differ, and an `ignorable` Surefoot be missing in silence. Nothing
    where no ClusterIP is named, or where the overlay has it already.

    Raises:
        SiteError: the file names what the Service of the profile `tls` cannot be.
    """
    if site.shape.lease or site.service == site.shape.service:
        return ()
    parts = urlsplit(site.service)
    host = parts.hostname or ""
    address = _cluster_ip(host)
    if parts.path or not (address or f"{host}.".startswith(f"{SERVER_NAME}.")):
        if site.shape.tls:
            raise SiteError(
                f"--service {site.service}: the Service that -o installs cannot be there, give a "
                "ClusterIP and a port like https://10.96.0.88:8888, or print the file without -o"
            )
        return ()
    operations: list[dict[str, str | int]] = []
    if address:
        operations.append({"op": "add", "path": "/spec/clusterIP", "value": address})
    if (port := parts.port or _WELL_KNOWN[parts.scheme]) != _PORT:
        operations.append({"op": "replace", "path": "/spec/ports/0/port", "value": port})
    if not operations:
        return ()
    target = (Line("kind", "Service"), Line("name", "surefoot"))
    patch = (Line("target", target), Line("patch", json.dumps(operations)))
    return (
        Line("patches", Items((patch,)), "The Service where kube-scheduler's file says it is."),
    )


def _cluster_ip(host: str) -> str:
    """The host, if a Service can have it as its address."""
    try:
        address = ip_address(host)
    except ValueError:
        return ""
    barred = (
        address.is_loopback, address.is_link_local, address.is_multicast, address.is_unspecified,
    )  # fmt: skip
    return "" if any(barred) else str(address)
