"""The parts of the API server's JSON that are read here; the objects stay bytes."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw, Struct


class _Object(Struct, frozen=True, gc=False, rename="camel"):
    """A JSON object with Kubernetes' spelling of keys."""


class Header(_Object, frozen=True):
    """What tells an object from others of its kind, and this state of it from others."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or the name of an object that has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Headed(_Object, frozen=True):
    """An object of any kind."""

    metadata: Header


class ListHeader(Struct, frozen=True, gc=False, rename="camel"):
    """Which moment a list shows, and where it goes on."""

    resource_version: str = ""
    continue_: str | None = msgspec.field(name="continue", default=None)


class Page(_Object, frozen=True):
    """One page of a list."""

    metadata: ListHeader
    items: list[Raw] | None = None


class Event(_Object, frozen=True):
    """One line of a watch."""

    type: str
    object: Raw


class Details(_Object, frozen=True):
    """More of a Status."""

    retry_after_seconds: int | None = None


class Status(_Object, frozen=True):
    """Why a request failed."""

    message: str | None = None
    code: int | None = None
    details: Details | None = None


class Version(_Object, frozen=True):
    """One version of a group."""

    version: str


class Group(_Object, frozen=True):
    """The versions of an API group that are served."""

    versions: list[Version] | None = None
    preferred_version: Version | None = None


class Resource(_Object, frozen=True):
    """One kind of objects, by its plural, or a part of one, as `pods/status`."""

    name: str


class Resources(_Object, frozen=True):
    """What one version of a group has."""

    resources: list[Resource] | None = None


class LeaseSpec(_Object, frozen=True):
    """Who leads, and since when."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    renew_time: str | None = None


class Lease(_Object, frozen=True):
    """One Lease of coordination.k8s.io/v1."""

    spec: LeaseSpec = LeaseSpec()


HEADED: Final = msgspec.json.Decoder(Headed)
PAGE: Final = msgspec.json.Decoder(Page)
EVENT: Final = msgspec.json.Decoder(Event)
STATUS: Final = msgspec.json.Decoder(Status)
GROUP: Final = msgspec.json.Decoder(Group)
RESOURCES: Final = msgspec.json.Decoder(Resources)
LEASE: Final = msgspec.json.Decoder(Lease)
