"""A reflector whose objects are kept, and objects to feed it with."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from extender.kube.client import Client
from extender.kube.discovery import Place
from extender.kube.reflector import Reflector
from extender.kube.settings import KubeSettings
from extender.kube.shapes import Header
from extender.kube.status import Status, Timing

QUICK = Timing(watch_s=30.0, silence_s=20.0, first_pause_s=0.01, last_pause_s=0.05)


class Follow:
    """A started reflector, of pods if of nothing else, and all that it handed out: objects as their
    versions.
    """

    def __init__(
        self, settings: KubeSettings, timing: Timing | None, place: str | Place = "/api/v1/pods"
    ) -> None:
        self.now: dict[str, str] = {}
        """What its handler would know: key -> resourceVersion."""
        self.said: list[str] = []
        """Calls of the handler, in order."""
        self.fails_next = False
        self.bad = "bad"
        """How the names of objects begin on which it fails."""
        self.reflector = Reflector(Client(settings), place, self, timing=timing or QUICK)
        self.reflector.start()

    @property
    def status(self) -> Status:
        """The reflector's word on itself."""
        return self.reflector.status

    def close(self) -> None:
        """Stop it."""
        self.reflector.close()

    def read(self, header: Header, raw: Raw) -> str | None:
        """The handler's side."""
        if header.name.startswith("boring"):
            return None
        if header.name.startswith(self.bad):
            raise ValueError(f"{header.name} is bad")
        assert header.name.encode() in bytes(raw)
        return header.resource_version

    def listing(self) -> None:
        """The same."""
        self.said.append("listing")

    def listed(self, found: dict[str, str], *, whole: bool) -> None:
        """The same."""
        self.now = dict(found)
        self.said.append("listed" if whole else "listed in part")

    def changed(self, key: str, now: str | None) -> None:
        """The same."""
        if self.fails_next:
            self.fails_next = False
            raise ValueError(key)
        self.said.append(f"{key} {'gone' if now is None else 'here'}")
        if now is None:
            self.now.pop(key, None)
        else:
            self.now[key] = now


def pod(name: str, namespace: str = "lab", **more: Any) -> dict[str, Any]:
    """A Pod as far as a reflector looks at it."""
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}, **more}
