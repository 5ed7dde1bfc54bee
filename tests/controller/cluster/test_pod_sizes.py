"""What a pod asks of a node beside GPUs is what kube-scheduler counts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from cluster_objects import Json

from extender.controller.cluster import nodes, shapes, sizes
from extender.controller.objects import NODE
from extender.controller.projection import ProjectionError
from scoring.planning.values import Amounts, HostPort, Room


def spec(*containers: Json, **more: Any) -> shapes.Spec:
    """A spec as the API server shows it."""
    return msgspec.json.decode(
        msgspec.json.encode({"containers": containers, **more}), type=shapes.Spec
    )


def asks(**requests: str) -> Json:
    """A container that requests this."""
    return {"resources": {"requests": requests}}


def sidecar(**requests: str) -> Json:
    """An init container that goes on running."""
    return {**asks(**requests), "restartPolicy": "Always"}


GIB = 1 << 30


@pytest.mark.parametrize(
    ("found", "amounts"),
    [
        (spec(), Amounts()),
        (spec({"resources": None}), Amounts()),
        (spec(asks(cpu="1500m", memory="1Gi"), asks(cpu="0.5")), Amounts(2000, GIB)),
        (spec(asks(**{"ephemeral-storage": "2Gi"})), Amounts(0, 0, 2 * GIB)),
        # rounded up, as Quantity.MilliValue does
        (spec(asks(cpu="100u", memory="0.5")), Amounts(1, 1)),
        (spec({"resources": {"limits": {"cpu": "2"}}}), Amounts(2000)),
        (
            spec({"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}),
            Amounts(1000),
        ),
        (spec(asks(cpu="1"), initContainers=[asks(cpu="4")]), Amounts(4000)),
        (spec(asks(cpu="3"), initContainers=[sidecar(cpu="2")]), Amounts(5000)),
        # the second init container runs beside the sidecar before it
        (spec(asks(cpu="1"), initContainers=[sidecar(cpu="2"), asks(cpu="4")]), Amounts(6000)),
        (spec(asks(cpu="1"), initContainers=[asks(cpu="4"), sidecar(cpu="2")]), Amounts(4000)),
        # of the whole pod, for what may be asked so
        (
            spec(
                asks(cpu="1", memory="1Gi", **{"ephemeral-storage": "1Gi"}),
                resources={"requests": {"cpu": "8", "ephemeral-storage": "9Gi"}},
            ),
            Amounts(8000, GIB, GIB),
        ),
        (
            spec(asks(cpu="1"), overhead={"cpu": "250m"}, resources={"requests": {"cpu": "2"}}),
            Amounts(2250),
        ),
    ],
)
def test_amounts_are_those_of_the_scheduler(found: shapes.Spec, amounts: Amounts) -> None:
    """Containers and sidecars together, or the largest init container beside its sidecars."""
    assert sizes.asked(found) == amounts


@pytest.mark.parametrize(
    ("found", "path"),
    [
        (spec(asks(), asks(cpu="-1")), "spec.containers[1].resources.requests[cpu]: '-1' is neg"),
        (spec(initContainers=[asks(memory="lots")]), "spec.initContainers[0].resources.requests"),
        (spec(overhead={"cpu": "?"}), "spec.overhead[cpu]"),
        (spec(resources={"requests": {"cpu": "x"}}), "spec.resources.requests[cpu]"),
    ],
)
def test_what_is_no_quantity_is_named(found: shapes.Spec, path: str) -> None:
    """With where it stands."""
    with pytest.raises(ProjectionError) as error:
        sizes.asked(found)
    assert str(error.value).startswith(path)


def test_host_ports_are_those_of_what_lasts() -> None:
    """Containers and sidecars; an init container is gone before the others start."""
    port = {"containerPort": 80, "hostPort": 8080}
    udp = {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}
    found = spec(
        {"ports": [port, {"containerPort": 443}]},
        initContainers=[
            {"ports": [udp], "restartPolicy": "Always"},
            {"ports": [{"containerPort": 1, "hostPort": 1}]},
        ],
    )
    assert sizes.host_ports(found) == {HostPort(8080), HostPort(53, "UDP", "10.0.0.1")}


def test_a_pod_in_the_hosts_network_takes_its_ports() -> None:
    """Whether or not the API server wrote that down."""
    found = spec({"ports": [{"containerPort": 9100}]}, hostNetwork=True)
    assert sizes.host_ports(found) == {HostPort(9100)}


def room(**allocatable: str) -> Room:
    """Of a node that has this."""
    body = {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}}
    return nodes.offer(NODE.decode(msgspec.json.encode(body)))


def test_a_node_offers_what_is_allocatable() -> None:
    """A node that does not say how many pods it takes takes none."""
    assert room(cpu="63500m", memory="1Ti", pods="110") == Room(
        allocatable=Amounts(63_500, 1 << 40), pods=110
    )
    assert room(cpu="1").pods == 0
    with pytest.raises(ProjectionError, match=r"status.allocatable\[pods\]"):
        room(pods="many")
