"""The one place that builds object graphs: from a configuration to things that run."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from pathlib import Path

import structlog
from flask import Flask

from extender import logs
from extender.config import load, model
from extender.config.model import SurefootConfig
from extender.ending import Ending
from extender.store.connect import SentinelSettings, StoreSettings, Tls
from extender.store.decisions import DecisionLog
from extender.store.picture import Changed
from extender.store.reader import Publish, Reader
from extender.version import VERSION
from extender.webhook.app import Deps, create_app
from extender.webhook.board import Board
from extender.webhook.metrics import Metrics
from extender.webhook.server import Server
from extender.webhook.tls import Certificates
from scoring.model import Fleet

log = structlog.get_logger()


def store_settings(config: SurefootConfig) -> StoreSettings:
    """How to reach the cache that a configuration names."""
    store = config.store
    tls, sentinel = None, None
    if store.tls is not None:
        tls = Tls(ca=_path(store.tls.ca), cert=_path(store.tls.cert), key=_path(store.tls.key))
    if store.sentinel is not None:
        hosts = tuple(model.address(host) for host in store.sentinel.hosts)
        sentinel = SentinelSettings(hosts=hosts, service=store.sentinel.service)
    return StoreSettings(
        url=store.url,
        sentinel=sentinel,
        username=store.username,
        password_file=_path(store.password_file),
        tls=tls,
    )


def certificates(config: SurefootConfig) -> Certificates | None:
    """What the webhook serves TLS with; None: it serves plain HTTP.

    Raises:
        TlsError: a file cannot be used.
    """
    files = config.webhook.tls
    if files is None:
        return None
    return Certificates(Path(files.cert), Path(files.key), _path(files.client_ca))


def _path(text: str | None) -> Path | None:
    return Path(text) if text is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook with the threads that feed it and that carry its records away."""

    app: Flask
    board: Board
    reader: Reader
    decisions: DecisionLog

    def start(self) -> None:
        """Start the threads; in the process that serves, after any fork."""
        self.decisions.start()
        self.reader.start()

    def close(self) -> None:
        """Stop the threads; records that wait are shipped within a short deadline."""
        self.reader.close()
        self.decisions.close()


def webhook(config: SurefootConfig) -> Webhook:
    """The parts of `serve`, not yet started."""
    policy = load.policy_of(config)
    settings = store_settings(config)
    board = Board(policy, time.monotonic, config.webhook.max_snapshot_age)
    reader = Reader(
        settings, _settling(board.publish), max_snapshot_age_s=config.webhook.max_snapshot_age
    )
    decisions = DecisionLog(settings)
    metrics = Metrics(VERSION)
    _watch(metrics, board, reader, decisions)
    app = create_app(
        Deps(
            config=config.webhook,
            policy=policy,
            gangs=config.gangs.rules,
            board=board,
            metrics=metrics,
            record=lambda record: decisions.append(record.tell),
            version=VERSION,
            connected=lambda: reader.status.connected,
        )
    )
    return Webhook(app=app, board=board, reader=reader, decisions=decisions)


def _settling(publish: Publish) -> Publish:
    """`publish` that has Python's collector pass over what a full load made: it stays, nothing in it
    forms cycles, and to look through it again and again would stop all threads for 0.1 s each time.
    """

    def settled(fleet: Fleet, changed: Changed) -> None:
        publish(fleet, changed)
        if changed is None:
            gc.collect()
            gc.freeze()

    return settled


def _watch(metrics: Metrics, board: Board, reader: Reader, decisions: DecisionLog) -> None:
    metrics.watch("surefoot_snapshot_age_seconds", "Since the cache was last heard.", board.age_s)
    metrics.watch(
        "surefoot_snapshot_generation",
        "Generation of the snapshot that answers rest on.",
        lambda: reader.status.generation,
    )
    metrics.watch(
        "surefoot_snapshot_nodes",
        "Nodes in the snapshot.",
        lambda: len(view.picture.candidates) if (view := board.latest()) else 0,
    )
    metrics.watch(
        "surefoot_store_connected",
        "1 while the cache answers.",
        lambda: float(reader.status.connected),
    )
    metrics.watch(
        "surefoot_quarantined",
        "Documents or stamps of the cache that cannot be read.",
        lambda: reader.status.quarantined,
    )
    metrics.count(
        "surefoot_store_reloads",
        "Full loads of the cache.",
        lambda: reader.status.reloads,
    )
    metrics.count(
        "surefoot_decisions_dropped",
        "Decision records that were dropped because the cache took none.",
        lambda: decisions.dropped,
    )


def control(config: SurefootConfig, ending: Ending) -> None:
    """Mirror the cluster into the cache until a signal ends it.

    Raises:
        extender.listening.BindError: the address of its pages cannot be had.
        extender.kube.errors.KubeError: nothing says where the API server is.
    """
    from extender.controller.control import Controller, ControlSettings  # noqa: PLC0415 - half a second for the Kubernetes client, which only this command needs
    from extender.kube.lease import LeaseSettings  # noqa: PLC0415
    from extender.kube.settings import KubeSettings, configuration  # noqa: PLC0415

    logs.configure(as_json=config.log.format is model.LogFormat.JSON, level=config.log.level)
    kube = KubeSettings(kubeconfig=_path(config.kube.kubeconfig), context=config.kube.context)
    store, wished = store_settings(config), config.controller
    server = configuration(kube).host
    lease = LeaseSettings(
        name=wished.lease.name,
        namespace=wished.lease.namespace,
        duration_s=wished.lease.duration,
        retry_s=wished.lease.retry,
    )
    controller = Controller(
        ControlSettings(
            kube=kube,
            store=store,
            bind=model.address(wished.bind),
            version=VERSION,
            lease=lease,
            policy=load.policy_of(config),
            rules=config.gangs.rules,
            mode=wished.mode,
            unknown_nodes=config.webhook.unknown_nodes,
            taint=wished.taint,
            max_snapshot_age_s=config.webhook.max_snapshot_age,
        )
    )
    controller.start()
    log.info(
        "listening",
        address=controller.address,
        api_server=server,
        store=store.server,
        version=VERSION,
    )
    while not ending.within(60.0):
        pass
    controller.close()


def serve(config: SurefootConfig) -> None:
    """Serve until a signal ends it. Does not return: gunicorn exits the process.

    Raises:
        BindError: the address cannot be had.
        TlsError: a certificate or key cannot be used.
    """
    logs.configure(as_json=config.log.format is model.LogFormat.JSON, level=config.log.level)
    secured = certificates(config)
    running: list[Webhook] = []

    def build() -> Flask:
        made = webhook(config)
        made.start()
        running.append(made)
        return made.app

    def started(address: str) -> None:
        log.info(
            "listening",
            address=address,
            tls=secured is not None,
            mode=config.webhook.mode.value,
            store=store_settings(config).server,
            version=VERSION,
        )

    def stopped() -> None:
        for made in running:
            made.close()

    Server(config.webhook.bind, build, certificates=secured, started=started, stopped=stopped).run()
