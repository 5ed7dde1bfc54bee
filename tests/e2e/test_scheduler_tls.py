"""deploy/scheduler-config/tls.yaml: HTTPS with certificates of both sides, and nothing less."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import shipped
import trustme
import urllib3
import yaml
from asking import Json
from replicas import samples

from e2e.caches import Cache
from e2e.fixtures import MakesScheduler
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.processes import Process, free_port
from extender.rendering.scheduler import SERVER_NAME
from extender.rendering.shapes import Name
from scoring.reasons import Reason

CLIENT = "kube-scheduler.invalid"
Pointed = Callable[..., Json]


def _files(authority: trustme.CA, name: str, folder: Path) -> dict[str, str]:
    """A certificate for `name` with its key and its authority, as kubeadm would lay them down."""
    folder.mkdir()
    made = authority.issue_cert(name)
    paths = {kind: folder / f"tls.{kind}" for kind in ("crt", "key")}
    made.cert_chain_pems[0].write_to_path(paths["crt"])
    made.private_key_pem.write_to_path(paths["key"])
    authority.cert_pem.write_to_path(folder / "ca.crt")
    return {"ca": str(folder / "ca.crt"), **{kind: str(path) for kind, path in paths.items()}}


@pytest.fixture(scope="module", name="authority")
def _authority() -> trustme.CA:
    """Signs the server and its clients."""
    return trustme.CA()


@pytest.fixture(name="port")
def _port(cache: Cache, gpu_nodes: Nodes, authority: trustme.CA, tmp_path: Path) -> Iterator[int]:
    """Where a Surefoot with the shipped settings serves HTTPS; it knows one node, a bad one."""
    gpu_nodes(1)
    gpu_nodes.report(cache.settings, sick={"gpu-0": {0: "DEGRADED"}})
    server = _files(authority, SERVER_NAME, tmp_path / "server")
    settings: Any = shipped.settings(Name.TLS)
    port = free_port()
    settings["webhook"] |= {
        "bind": f"127.0.0.1:{port}",
        "tls": {"cert": server["crt"], "key": server["key"], "clientCa": server["ca"]},
    }
    settings["store"] = {"url": cache.settings.url}
    settings["policy"] = {"staleAfter": "1h", "unknownAfter": "2h"}
    file = tmp_path / "surefoot.yaml"
    file.write_text(yaml.safe_dump(settings))
    made = Process(
        [sys.executable, "-m", "extender", "serve", f"--config={file}"], tmp_path / "surefoot.log"
    )
    with urllib3.PoolManager(
        ca_certs=server["ca"], server_hostname=SERVER_NAME, assert_hostname=SERVER_NAME,
        retries=False, timeout=5.0,
    ) as pool:  # fmt: skip

        def knows_the_node() -> bool:
            try:
                page = pool.request("GET", f"https://127.0.0.1:{port}/metrics").data.decode()
            except urllib3.exceptions.HTTPError:
                return False
            return samples(page).get("surefoot_snapshot_nodes") == 1

        try:
            made.start().wait_until(knows_the_node)
            yield port
        finally:
            made.kill()


@pytest.fixture(name="pointed")
def _pointed(port: int, authority: trustme.CA, tmp_path: Path) -> Pointed:
    """Makes the shipped file, closed, with the paths and the address of this test."""

    def of(client: trustme.CA = authority, server: trustme.CA = authority, **tls: str) -> Json:
        config: Json = shipped.config(Name.TLS)
        (extender,) = config["extenders"]
        paths = _files(client, CLIENT, tmp_path / "client")
        server.cert_pem.write_to_path(paths["ca"])
        extender["urlPrefix"] = f"https://127.0.0.1:{port}"
        extender["ignorable"] = False
        extender["tlsConfig"] |= {
            "caFile": paths["ca"], "certFile": paths["crt"], "keyFile": paths["key"], **tls,
        }  # fmt: skip
        return config

    return of


def test_both_sides_know_each_other(
    pointed: Pointed, pods: Pods, scheduler: MakesScheduler
) -> None:
    """By the names and keys of the file: the gang is judged, over HTTPS."""
    running = scheduler(pointed())
    pods.create(pod("rank-0", gpus=8, gang="train", scheduler="surefoot"))
    assert f"1 {Reason.GPU_DEGRADED.text}" in pods.refused("rank-0")
    assert running.extender_errors() == []


def test_a_client_of_another_authority_is_not_answered(
    pointed: Pointed, pods: Pods, scheduler: MakesScheduler
) -> None:
    """The handshake fails: its pods wait, or run unjudged where it is ignorable."""
    scheduler(pointed(client=trustme.CA()))
    pods.create(pod("rank-0", gpus=8, gang="train", scheduler="surefoot"))
    assert "unknown certificate authority" in pods.failed_scheduling("rank-0")


def test_a_client_without_a_certificate_is_not_answered(
    pointed: Pointed, pods: Pods, scheduler: MakesScheduler
) -> None:
    """It may GET, and kube-scheduler POSTs."""
    config = pointed()
    for line in ("certFile", "keyFile"):
        del config["extenders"][0]["tlsConfig"][line]
    scheduler(config)
    pods.create(pod("rank-0", gpus=8, gang="train", scheduler="surefoot"))
    assert "code 403" in pods.failed_scheduling("rank-0")


def test_a_server_of_another_authority_is_not_believed(
    pointed: Pointed, pods: Pods, scheduler: MakesScheduler
) -> None:
    """`caFile` is what makes kube-scheduler verify at all."""
    scheduler(pointed(server=trustme.CA()))
    pods.create(pod("rank-0", gpus=8, gang="train", scheduler="surefoot"))
    assert "unknown authority" in pods.failed_scheduling("rank-0")


def test_a_server_of_another_name_is_not_believed(
    pointed: Pointed, pods: Pods, scheduler: MakesScheduler
) -> None:
    """`serverName` is looked for in the certificate, whatever the address is."""
    scheduler(pointed(serverName="elsewhere.invalid"))
    pods.create(pod("rank-0", gpus=8, gang="train", scheduler="surefoot"))
    assert "elsewhere.invalid" in pods.failed_scheduling("rank-0")
