"""What an API server serves: the resources of a group, and the path of those that may be absent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec
from msgspec.json import Decoder

from extender.kube.client import Client
from extender.kube.errors import ABSENT, GarbageError, RefusedError
from extender.kube.shapes import GROUP, RESOURCES

T = TypeVar("T")


class Place(Protocol):
    """Where the objects of one kind are."""

    @property
    def name(self) -> str:
        """The kind, as a path says it: `pods`."""

    def path(self, client: Client) -> str | None:
        """The path of their list; None: the API server does not serve them now.

        Raises:
            KubeError: it does not say.
        """


@dataclass(frozen=True, slots=True)
class Fixed:
    """A kind that every API server serves, at a path that is known: `/api/v1/pods`."""

    at: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.at.rpartition("/")[2]

    def path(self, _client: Client) -> str:
        """The path itself."""
        return self.at


@dataclass(frozen=True, slots=True)
class Discovered:
    """A resource of an API group, in the version that is preferred among those that serve it."""

    group: str
    resource: str
    """The plural: `podgroups`."""
    versions: frozenset[str] | None = None
    """Those that can be read; None: any."""

    @property
    def name(self) -> str:
        """`podgroups.scheduling.k8s.io`: several groups have resources of one name."""
        return f"{self.resource}.{self.group}"

    def path(self, client: Client) -> str | None:
        """The path of its list in all namespaces, as it is served now."""
        version = served(client, self.group, self.versions).get(self.resource)
        return None if version is None else f"/apis/{self.group}/{version}/{self.resource}"


def served(client: Client, group: str, versions: frozenset[str] | None = None) -> dict[str, str]:
    """The version of each resource of a group, by its plural: the preferred version first, then in
    the API server's order, newest first, and of these only `versions`. Empty: the group is not
    served.

    Raises:
        KubeError: the API server does not say, or says what cannot be read.
    """
    body = _found(client, f"/apis/{group}")
    if body is None:
        return {}
    listed = _read(GROUP, body, group)
    preferred = (listed.preferred_version,) if listed.preferred_version else ()
    found: dict[str, str] = {}
    for version in dict.fromkeys(each.version for each in (*preferred, *(listed.versions or ()))):
        if versions is not None and version not in versions:
            continue
        resources = _found(client, f"/apis/{group}/{version}")
        if resources is None:
            continue  # it went between the two questions
        for each in _read(RESOURCES, resources, group).resources or ():
            if "/" not in each.name:  # `pods/status` is a part of pods
                found.setdefault(each.name, version)
    return found


def _found(client: Client, path: str) -> bytes | None:
    try:
        return client.get(path, {})
    except RefusedError as error:
        if error.status != ABSENT:
            raise
        return None


def _read(decoder: Decoder[T], body: bytes, group: str) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GarbageError(f"what is served of {group} cannot be read: {error}") from error
