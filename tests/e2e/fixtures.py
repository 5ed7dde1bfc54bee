"""What a test of this folder asks for; README.md shows how."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

import pytest
from asking import Json

from e2e import binaries
from e2e.caches import Cache
from e2e.cluster import Cluster, running
from e2e.control_plane import ClusterSettings
from e2e.go import BuildError
from e2e.nodes import Nodes
from e2e.pods import Pods
from e2e.relays import Relay
from e2e.schedulers import Scheduler
from e2e.storage import Storage
from e2e.surefoots import Controller, Surefoot
from e2e.waiting import eventually
from extender.store.connect import StoreSettings

Clusters = Callable[[ClusterSettings], Cluster]
DEPLOYED: Final = Path(__file__).parents[2] / "deploy" / "kustomize" / "base"


class MakesScheduler(Protocol):
    """Starts a kube-scheduler with a configuration: a file, or its content."""

    def __call__(self, config: Json | Path, *, name: str = ..., verbosity: int = ...) -> Scheduler:
        """`name`: of its log, where a test has several; `verbosity`: less than 5 where many pods
        come, at the price of not seeing errors of /prioritize.
        """


class MakesSurefoot(Protocol):
    """Starts a `surefoot serve` on this test's cache."""

    def __call__(
        self,
        *,
        name: str = ...,
        nodes: int = ...,
        policy: Json | None = ...,
        gangs: Json | None = ...,
        **webhook: object,
    ) -> Surefoot:
        """`nodes`: how many to wait for; the others in the words of the file's sections."""


class MakesController(Protocol):
    """Starts a `surefoot controller` on this test's cache, as its own ServiceAccount."""

    def __call__(
        self,
        *,
        name: str = ...,
        gangs: Json | None = ...,
        policy: Json | None = ...,
        via: Relay | None = ...,
        store: StoreSettings | None = ...,
        **controller: object,
    ) -> Controller:
        """`name`: of its log, where a test has several; `via`: what stands between it and the API
        server; `store`: where it finds the cache; the others in the words of the file's sections.
        """


@pytest.fixture(scope="session")
def clusters(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clusters]:
    """Control planes by settings, each started when it is first asked for, and kept."""
    version: str = request.config.getoption("kubernetes")
    there: dict[ClusterSettings, Cluster] = {}
    with ExitStack() as stack:

        def of(wanted: ClusterSettings) -> Cluster:
            settings = replace(wanted, version=version)
            if settings not in there:
                try:
                    programs = binaries.built(version)
                except BuildError as error:
                    pytest.exit(str(error), returncode=1)
                directory = tmp_path_factory.mktemp("cluster")
                there[settings] = stack.enter_context(running(settings, programs, directory))
            return there[settings]

        yield of
    if not request.session.testsfailed:
        for each in there.values():
            shutil.rmtree(each.directory)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, clusters: Clusters) -> Iterator[Cluster]:
    """A control plane without scheduler and nodes, shared by all tests with equal settings.

    Others than the default ones: `@pytest.mark.parametrize("cluster", [SETTINGS], indirect=True)`.
    Nobody may have been refused for lack of rights when the test ends.
    """
    found = clusters(getattr(request, "param", ClusterSettings()))
    yield found
    refusals = found.audit.refusals()
    if refusals:
        pytest.fail("; ".join(map(str, refusals)), pytrace=False)


@pytest.fixture
def gpu_nodes(cluster: Cluster) -> Iterator[Nodes]:
    """Makes nodes, and removes them."""
    made = Nodes(cluster.api)
    yield made
    made.remove()


@pytest.fixture
def pods(request: pytest.FixtureRequest, cluster: Cluster, gpu_nodes: Nodes) -> Iterator[Pods]:
    """The pods of this test, in a namespace of its own, which goes with them."""
    readable = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-")
    namespace = f"{readable}-{secrets.token_hex(3)}"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    eventually(lambda: cluster.api.find(account), "the namespace can have pods")
    made = Pods(cluster.api, namespace)
    yield made
    # In this order, so that no controller makes new ones.
    cluster.api.delete(f"/api/v1/namespaces/{namespace}")
    cluster.api.delete(made.path, gracePeriodSeconds="0")
    eventually(lambda: not made.all(), "the pods of the test are gone")


@pytest.fixture
def storage(cluster: Cluster, pods: Pods) -> Iterator[Storage]:
    """Volumes for the pods of this test."""
    made = Storage(cluster.api, pods.namespace)
    yield made
    made.remove()


@pytest.fixture
def scheduler(cluster: Cluster, tmp_path: Path) -> Iterator[MakesScheduler]:
    """Starts kube-schedulers, each with a log of its own, and ends them."""
    with ExitStack() as stack:

        def start(
            config: Json | Path, *, name: str = "kube-scheduler", verbosity: int = 5
        ) -> Scheduler:
            made = Scheduler(cluster, config, tmp_path / f"{name}.log", verbosity)
            stack.callback(made.kill)
            made.start()
            return made

        yield start


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    """A Valkey of this test's own."""
    made = Cache(tmp_path / "valkey.log")
    made.start()
    yield made
    made.kill()


@pytest.fixture
def surefoot(cache: Cache, tmp_path: Path) -> Iterator[MakesSurefoot]:
    """Starts replicas of Surefoot, each with a log of its own, and ends them."""
    with ExitStack() as stack:

        def start(
            *,
            name: str = "surefoot",
            nodes: int = 0,
            policy: Json | None = None,
            gangs: Json | None = None,
            **webhook: object,
        ) -> Surefoot:
            log = tmp_path / f"{name}.log"
            made = Surefoot(cache.settings, log, policy=policy, gangs=gangs, **webhook)
            stack.callback(made.kill)
            made.start(nodes=nodes)
            return made

        yield start


@pytest.fixture
def controller(cluster: Cluster, cache: Cache, tmp_path: Path) -> Iterator[MakesController]:
    """Starts controllers of Surefoot with the rights that deploy/kustomize gives them."""
    cluster.apply(DEPLOYED / "namespace.yaml")
    cluster.apply(DEPLOYED / "rbac.yaml")
    kubeconfig = cluster.service_account("surefoot-system", "surefoot-controller")
    with ExitStack() as stack:

        def start(
            *,
            name: str = "controller",
            gangs: Json | None = None,
            policy: Json | None = None,
            via: Relay | None = None,
            store: StoreSettings | None = None,
            **controller: object,
        ) -> Controller:
            log = tmp_path / f"{name}.log"
            way = via.kubeconfig(kubeconfig, log.with_suffix(".kubeconfig")) if via else kubeconfig
            made = Controller(
                store or cache.settings, way, log, gangs=gangs, policy=policy, **controller
            )
            stack.callback(made.kill)
            made.start()
            return made

        yield start
