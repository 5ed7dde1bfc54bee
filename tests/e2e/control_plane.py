"""etcd, kube-apiserver and kube-controller-manager, each as itself, on ports of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from servers import listens

from e2e import versions
from e2e.api import Api
from e2e.audit import Audit
from e2e.binaries import Binaries
from e2e.identities import MASTERS, Authority, by_certificate, write_kubeconfig
from e2e.processes import Process, free_port

ADMIN: Final = "e2e-admin"
MANAGER: Final = "system:kube-controller-manager"
ISSUER: Final = "https://kubernetes.default.svc"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """What sets one control plane apart from another; tests with equal ones share it."""

    version: str = versions.DEFAULT
    feature_gates: tuple[str, ...] = ()
    """As the flag takes them, `GenericWorkload=true`, for every program."""
    runtime_config: tuple[str, ...] = ()
    """APIs to serve besides the default ones, `scheduling.k8s.io/v1beta1=true`."""
    controllers: tuple[str, ...] = ("*",)
    """As kube-controller-manager's flag takes them, `-node-lifecycle-controller`."""


class ControlPlane:
    """One of them; `directory` holds its logs and secrets."""

    def __init__(self, settings: ClusterSettings, binaries: Binaries, directory: Path) -> None:
        self.settings = settings
        self.directory = directory
        self.authority = Authority(directory / "pki")
        self.audit = Audit(directory)
        self.server = f"https://127.0.0.1:{(port := free_port())}"
        admin = self.authority.user(ADMIN, MASTERS)
        self.api = Api(self.server, self.authority.certificate, admin)
        """As the administrator, and so is `kubeconfig`."""
        self.kubeconfig = self.kubeconfig_for("admin", by_certificate(admin))
        self._program = binaries.control_plane
        self._etcd_port = free_port()
        self._etcd = self.process("etcd", self._etcd_flags(), gated=False)
        self._apiserver = self.process("kube-apiserver", self._apiserver_flags(port))
        self._manager = self.process("kube-controller-manager", self._manager_flags())

    def start(self) -> Self:
        """Return once the API server serves and the controllers run."""
        self._etcd.start().wait_until(lambda: listens(self._etcd_port))
        self._apiserver.start().wait_until(self.api.ready)
        self._manager.start()
        return self

    def kill(self) -> None:
        """End it: nothing in it is worth a goodbye."""
        self.api.close()
        for each in (self._manager, self._apiserver, self._etcd):
            each.kill()

    def process(
        self, name: str, flags: Sequence[str], *, gated: bool = True, log: Path | None = None
    ) -> Process:
        """One of its programs, not yet started; `gated`: it knows feature gates."""
        gates = self.settings.feature_gates if gated else ()
        gate_flags = [f"--feature-gates={','.join(gates)}"] if gates else []
        return Process(
            [self._program, name, *flags, *gate_flags], log or self.directory / f"{name}.log"
        )

    def kubeconfig_for(self, name: str, user: Mapping[str, str]) -> Path:
        """A kubeconfig of this cluster for one user."""
        return write_kubeconfig(
            self.directory / f"{name}.kubeconfig",
            server=self.server,
            authority=self.authority.certificate,
            user=user,
        )

    def _etcd_flags(self) -> list[str]:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{free_port()}"
        return [
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            f"--quota-backend-bytes={4 << 30}",
            "--unsafe-no-fsync",  # a crash of this machine may lose it
            "--log-level=warn",
        ]

    def _apiserver_flags(self, port: int) -> list[str]:
        key = self.authority.accounts.key
        flags = [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # nothing asks for the Service `kubernetes`
            f"--secure-port={port}",
            f"--tls-cert-file={self.authority.serving.certificate}",
            f"--tls-private-key-file={self.authority.serving.key}",
            f"--client-ca-file={self.authority.certificate}",
            "--authorization-mode=RBAC",
            f"--audit-policy-file={self.audit.policy}",
            f"--audit-log-path={self.audit.log}",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.0.0.0/16",
            # Thousands of pods in one test must not wait for each other.
            "--max-requests-inflight=3000",
            "--max-mutating-requests-inflight=1500",
        ]
        if self.settings.runtime_config:
            flags.append(f"--runtime-config={','.join(self.settings.runtime_config)}")
        return flags

    def _manager_flags(self) -> list[str]:
        user = by_certificate(self.authority.user(MANAGER))
        return [
            f"--kubeconfig={self.kubeconfig_for('kube-controller-manager', user)}",
            f"--controllers={','.join(self.settings.controllers)}",
            "--use-service-account-credentials",  # each controller with its own rights
            f"--service-account-private-key-file={self.authority.accounts.key}",
            f"--root-ca-file={self.authority.certificate}",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]
