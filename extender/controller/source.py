"""One kind of objects on its way from the API server into the cache."""

from __future__ import annotations

from dataclasses import dataclass

from extender.controller.mirrors import Mirror, Told
from extender.kube.reflector import Reflector


@dataclass(frozen=True, slots=True)
class Source:
    """A reflector, and the mirror that it feeds."""

    reflector: Reflector[Told]
    mirror: Mirror
