"""The pods that Surefoot's scheduling gate holds, and how a person lets them go.

No cache and no controller is needed for it, and no fence asked: it is there for when those fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from msgspec import Raw, Struct

from extender.kube import paths
from extender.kube.client import Client
from extender.kube.errors import ABSENT, GarbageError, GoneError, RefusedError
from extender.kube.settings import KubeSettings
from extender.kube.shapes import PAGE
from extender.kube.writing import Writer
from extender.wire import asks, pods
from scoring import gang
from scoring.gangs.rules import GATE

PODS: Final = "/api/v1/pods"
PAGE_SIZE: Final = 500
TRIES: Final = 5
"""Of one pod that others change at the same time, and of a list whose version is gone."""
_MOVED: Final = frozenset({409, 422})
"""It is no longer what it was: by its version, or by a `test`."""
_GARBAGE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Gate(Struct, frozen=True, gc=False):
    """One scheduling gate."""

    name: str | None = None


class GatedSpec(pods.Spec, frozen=True):
    """What a pod waits for."""

    scheduling_gates: tuple[Gate, ...] | None = None


class CreatedMetadata(pods.Metadata, frozen=True):
    """Who the pod is, and since when."""

    creation_timestamp: str | None = None


class GatedPod(pods.Pod, frozen=True):
    """One pod, as far as its gates go."""

    metadata: CreatedMetadata | None = None
    spec: GatedSpec | None = None


_POD: Final = msgspec.json.Decoder(GatedPod)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One pod that our gate holds."""

    namespace: str
    name: str
    uid: str
    gang: str | None
    """The key of its gang, `namespace/name`; None: it belongs to none."""
    created_s: float | None
    """Unix time."""
    gates: tuple[str, ...]
    """All of its gates, ours among them, in their order."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def path(self) -> str:
        """Where it is."""
        return paths.pod(self.namespace, self.name)


class Gates:
    """Our gates of one cluster, for one thread."""

    def __init__(self, settings: KubeSettings) -> None:
        self._client = Client(settings)
        self._writer = Writer(settings, None, connections=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()
        self._writer.close()

    def held(self) -> tuple[Held, ...]:
        """All pods that our gate holds, by key.

        Raises:
            KubeError: the API server does not say.
        """
        for _ in range(TRIES - 1):
            try:
                return self._listed()
            except GoneError:
                continue  # the list took too long for its version to be kept
        return self._listed()

    def release(self, pod: Held) -> bool:
        """Take our gate from one pod; the gates of others stay. False: the gate, or the pod, was
        gone already.

        Raises:
            KubeError: the API server refused, or did not answer.
        """
        now: Held | None = pod
        for left in reversed(range(TRIES)):
            if now is None or now.uid != pod.uid:
                return False
            try:
                return self._patch(now)
            except RefusedError as error:
                if error.status not in _MOVED or not left:
                    raise
            now = self._read(pod)
        return False

    def _listed(self) -> tuple[Held, ...]:
        query: dict[str, str | int] = {"limit": PAGE_SIZE, "fieldSelector": "spec.nodeName="}
        found: list[Held] = []
        while True:
            try:
                page = PAGE.decode(self._client.get(PODS, query))
            except _GARBAGE as error:
                raise GarbageError(f"the list of pods cannot be read: {error}") from error
            found += filter(None, map(_held, page.items or ()))
            if not page.metadata.continue_:
                return tuple(sorted(found, key=lambda each: each.key))
            query["continue"] = page.metadata.continue_

    def _read(self, pod: Held) -> Held | None:
        try:
            return _held(self._client.get(pod.path, {}))
        except RefusedError as error:
            if error.status != ABSENT:
                raise
            return None

    def _patch(self, pod: Held) -> bool:
        try:
            self._writer.patch(pod.path, msgspec.json.encode(list(_operations(pod))))
        except RefusedError as error:
            if error.status != ABSENT:
                raise
            return False
        return True


def _held(raw: bytes | Raw) -> Held | None:
    """The pod, if our gate holds it."""
    try:
        pod = _POD.decode(raw)
    except _GARBAGE as error:
        raise GarbageError(f"a pod cannot be read: {error}") from error
    metadata, spec = pod.metadata, pod.spec
    gates = tuple(gate.name or "" for gate in (spec and spec.scheduling_gates) or ())
    if metadata is None or GATE not in gates:
        return None
    facts = asks.facts_of(pod)
    member_of = gang.detect(facts)
    return Held(
        namespace=facts.namespace,
        name=metadata.name or "",
        uid=metadata.uid or "",
        gang=member_of.key if member_of else None,
        created_s=paths.unix_s(metadata.creation_timestamp or ""),
        gates=gates,
    )


def _operations(pod: Held) -> Iterator[dict[str, Any]]:
    gate = f"/spec/schedulingGates/{pod.gates.index(GATE)}"
    yield {"op": "test", "path": "/metadata/uid", "value": pod.uid}
    yield {"op": "test", "path": f"{gate}/name", "value": GATE}
    yield {"op": "remove", "path": gate}
