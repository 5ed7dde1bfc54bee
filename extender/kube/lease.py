"""A Lease of the API server (coordination.k8s.io/v1): who leads, as everybody sees it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from extender.kube import paths
from extender.kube.client import Client
from extender.kube.errors import ABSENT, GarbageError, RefusedError
from extender.kube.settings import KubeSettings
from extender.kube.shapes import LEASE
from extender.kube.writing import Writer

NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
NAMESPACE: Final = "surefoot"
LAST_TERM: Final = 2**31 - 2
"""`leaseTransitions` is an int32, and one more must fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Which Lease, and how patient."""

    name: str = "surefoot-controller"
    namespace: str | None = None
    """None: that of the pod that this runs in, else `surefoot`."""
    duration_s: float = 15.0
    """How long after its last renewal a leader is taken for dead."""
    retry_s: float = 2.0
    """How often the leader renews, and the others look."""

    @property
    def place(self) -> str:
        """The namespace."""
        return self.namespace or _own_namespace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Who holds a Lease. Two claims are equal as long as it is not renewed."""

    holder: str
    """Empty: nobody."""
    duration_s: float
    """How long after a renewal the holder may be there; 0: it does not say."""
    transitions: int
    renewed: str
    """When, on the holder's clock: good for telling renewals apart, and for nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The object as it was read or written last."""

    claim: Claim
    body: dict[str, Any]
    """All of it: what others wrote into it stays there."""


class LeaseFile:
    """The one object, read and written by one thread."""

    def __init__(self, kube: KubeSettings, settings: LeaseSettings) -> None:
        patience_s = settings.duration_s / 4  # so that a leader can try twice before its time is up
        self._settings = settings
        self._client = Client(kube, silence_s=patience_s)
        self._writer = Writer(kube, None, connections=1, timeout_s=patience_s)
        self._all = f"/apis/coordination.k8s.io/v1/namespaces/{settings.place}/leases"
        self._one = f"{self._all}/{settings.name}"

    def read(self) -> Lease | None:
        """It as it is now; None: there is none.

        Raises:
            KubeError: the API server does not say.
        """
        try:
            return _lease(self._client.get(self._one, {}))
        except RefusedError as error:
            if error.status != ABSENT:
                raise
            return None

    def write(self, last: Lease | None, holder: str, term: int, *, anew: bool) -> Lease:
        """Renew it for `holder`, or hand it over (`anew`); an empty holder gives it back.

        Raises:
            RefusedError: 409: it is no longer what it was at `last`; 404: it is gone.
            KubeError: the API server does not answer.
        """
        now = paths.micro_time(time.time())
        spec = {
            **((last.body.get("spec") or {}) if last else {}),
            "holderIdentity": holder,
            "leaseDurationSeconds": math.ceil(self._settings.duration_s) if holder else 1,
            "renewTime": now,
            "leaseTransitions": term,
            **({"acquireTime": now} if anew else {}),
        }
        if last is not None:
            return _lease(self._writer.replace(self._one, _encoded({**last.body, "spec": spec})))
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._settings.name, "namespace": self._settings.place},
            "spec": spec,
        }
        return _lease(self._writer.create(self._all, _encoded(body)))

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()
        self._writer.close()


def _own_namespace() -> str:
    try:
        return NAMESPACE_FILE.read_text(encoding="utf-8").strip() or NAMESPACE
    except OSError:
        return NAMESPACE


def _encoded(body: dict[str, Any]) -> bytes:
    return msgspec.json.encode(body)


def _lease(raw: bytes) -> Lease:
    try:
        spec = LEASE.decode(raw).spec
        body: dict[str, Any] = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GarbageError(f"the Lease cannot be read: {error}") from error
    claim = Claim(
        holder=spec.holder_identity or "",
        duration_s=float(max(0, spec.lease_duration_seconds or 0)),
        transitions=max(0, spec.lease_transitions or 0),
        renewed=spec.renew_time or "",
    )
    return Lease(claim=claim, body=body)
