"""What a pod asks of a node beside GPUs: cpu, memory, ephemeral storage, and ports of the node.

Amounts are those of k8s.io/component-helpers resource.PodRequests, by the rule of `wire.asks`, with
requests of the whole pod (KEP-2837) and overhead. While a pod is resized in place it counts what its
spec asks. Ports are those of the NodePorts plugin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from extender.controller.cluster.shapes import Container, Spec
from extender.controller.projection import ProjectionError
from extender.wire.pods import Resources
from extender.wire.quantities import Quantity, QuantityError, amount
from scoring.planning.values import Amounts, HostPort

_CPU, _MEMORY, _STORAGE = "cpu", "memory", "ephemeral-storage"
_OF_THE_POD: Final = frozenset({_CPU, _MEMORY})
"""What may be asked for the pod as a whole."""


def amounts_of(quantities: Mapping[str, Quantity] | None, path: str) -> Amounts:
    """What a list of resources has of each.

    Raises:
        ProjectionError: a quantity is none.
    """
    held = quantities or {}
    return Amounts(*(_amount(held, resource, path) for resource in (_CPU, _MEMORY, _STORAGE)))


def asked(spec: Spec) -> Amounts:
    """What the pod holds at its peak.

    Raises:
        ProjectionError: a quantity is none.
    """
    return Amounts(*(_asked(spec, resource) for resource in (_CPU, _MEMORY, _STORAGE)))


def host_ports(spec: Spec) -> frozenset[HostPort]:
    """The ports of the node that the pod takes as long as it runs."""
    return frozenset(
        HostPort(port=number, protocol=each.protocol or "TCP", ip=each.host_ip or "")
        for container in _lasting(spec)
        for each in container.ports or ()
        # The API server fills in the host port of a pod in the host's network.
        if (number := each.host_port or (spec.host_network and each.container_port) or 0) > 0
    )


def _asked(spec: Spec, resource: str) -> int:
    sidecars = peak = 0
    for index, container in enumerate(spec.init_containers or ()):
        need = _of_container(container, resource, f"spec.initContainers[{index}]")
        if container.restart_policy == "Always":
            sidecars += need
        else:
            peak = max(peak, sidecars + need)
    running = sidecars + sum(
        _of_container(container, resource, f"spec.containers[{index}]")
        for index, container in enumerate(spec.containers or ())
    )
    found = max(running, peak)
    whole = spec.resources.requests if spec.resources else None
    if whole and resource in whole and resource in _OF_THE_POD:
        found = _amount(whole, resource, "spec.resources.requests")
    return found + _amount(spec.overhead or {}, resource, "spec.overhead")


def _of_container(container: Container, resource: str, path: str) -> int:
    """Its request; the API server makes a limit without one its request."""
    found: Resources | None = container.resources
    if found is None:
        return 0
    if found.requests and resource in found.requests:
        return _amount(found.requests, resource, f"{path}.resources.requests")
    return _amount(found.limits or {}, resource, f"{path}.resources.limits")


def _amount(quantities: Mapping[str, Quantity], resource: str, path: str) -> int:
    if resource not in quantities:
        return 0
    try:
        return amount(quantities[resource], thousandths=resource == _CPU)
    except QuantityError as error:
        raise ProjectionError(f"{path}[{resource}]: {error}") from error


def _lasting(spec: Spec) -> Iterator[Container]:
    """Containers that run as long as the pod does."""
    yield from spec.containers or ()
    yield from (each for each in spec.init_containers or () if each.restart_policy == "Always")
