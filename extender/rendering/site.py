"""What differs from site to site, checked before anything is rendered."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from extender.config.model import FailurePolicy
from extender.rendering.shapes import SHAPES, Name, Shape
from scoring.model import ResourceKind
from scoring.resources import kind_of, order_of

GPU: Final = "nvidia.com/gpu"
KUBECONFIG: Final = "/etc/kubernetes/scheduler.conf"
"""Where kubeadm puts the one of its kube-scheduler."""
_QUALIFIED: Final = re.compile(r"[a-z0-9.-]{1,253}/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_REGISTRY: Final = re.compile(r"[a-z0-9][a-z0-9.-]*(:\d{1,5})?(/[a-z0-9][a-z0-9._-]*)*")


class SiteError(ValueError):
    """A wish that cannot be rendered, in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One file's wishes, sound and complete."""

    name: Name
    resources: tuple[str, ...]
    service: str
    policy: FailurePolicy
    kubeconfig: str
    registry: str | None = None

    @property
    def shape(self) -> Shape:
        """What the name stands for."""
        return SHAPES[self.name]

    @property
    def command(self) -> str:
        """What renders it, without what is the default."""
        said = {
            "--service": (self.service, self.shape.service),
            "--policy": (self.policy, self.shape.policy),
            "--kubeconfig": (self.kubeconfig, KUBECONFIG),
            "--registry": (self.registry, None),
        }
        words = ["surefoot", "render-config", "--profile", self.name]
        for name in self.resources if self.resources != (GPU,) else ():
            words += ["--resource", name]
        for option, (value, default) in said.items():
            words += [option, value] if value is not None and value != default else []
        return shlex.join(words)


def site(
    name: Name,
    *,
    resources: Iterable[str] = (),
    service: str | None = None,
    policy: FailurePolicy | None = None,
    kubeconfig: str = KUBECONFIG,
    registry: str | None = None,
) -> Site:
    """The wishes with what is not said filled in.

    Raises:
        SiteError: one of them cannot be, or two contradict each other.
    """
    shape = SHAPES[name]
    if policy not in (None, shape.policy) and shape.policy_is_its_name:
        raise SiteError(f"--policy {policy}: contradicts --profile {name}, which is {shape.policy}")
    if registry is not None and not _REGISTRY.fullmatch(registry):
        raise SiteError(
            f"--registry {registry}: is no registry, write it like registry.example:5000/ml"
        )
    return Site(
        name=name,
        resources=tuple(dict.fromkeys(map(_resource, resources))) or (GPU,),
        service=_service(name, service if service is not None else shape.service),
        policy=policy or shape.policy,
        kubeconfig=kubeconfig,
        registry=registry,
    )


def _resource(name: str) -> str:
    if kind_of(name) is ResourceKind.NONE:
        raise SiteError(
            f"--resource {name}: no GPU that Surefoot knows, write it like {GPU} or "
            "nvidia.com/mig-1g.10gb"
        )
    if not _QUALIFIED.fullmatch(name):
        raise SiteError(
            f"--resource {name}: kube-scheduler takes only letters, digits, '-', '_' and '.' after "
            "the '/', as the device plugin writes it on the node"
        )
    return name


def _service(name: Name, url: str) -> str:
    wanted = "https" if SHAPES[name].tls else "http"
    try:
        parts = urlsplit(url)
        sound = bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise SiteError(f"--service {url}: is no address, write it like {wanted}://10.96.0.88:8888")
    if parts.username is not None:
        raise SiteError("--service: kube-scheduler sends no password, leave it out")
    if parts.scheme != wanted:
        hint = "use --profile tls" if wanted == "http" else "kube-scheduler would not encrypt"
        raise SiteError(f"--service {url}: --profile {name} takes {wanted}://, {hint}")
    return url.rstrip("/")


def named_by_dns(service: str) -> bool:
    """Whether only the cluster's DNS knows this address."""
    return bool(re.search(r"\.svc(\.|$)", urlsplit(service).hostname or ""))


def resources_of(nodes: Any) -> tuple[str, ...]:
    """The GPU resources that `kubectl get nodes -o json` shows, whole GPUs first.

    Raises:
        SiteError: it is no list of nodes, or none of them has a GPU.
    """
    if not isinstance(nodes, dict) or nodes.get("kind") not in ("List", "NodeList", "Node"):
        raise SiteError(
            "--nodes: is no list of nodes, give the output of kubectl get nodes -o json"
        )
    listed = nodes.get("items") if nodes["kind"] != "Node" else [nodes]
    found: set[str] = set()
    for node in listed if isinstance(listed, list) else []:
        status = node.get("status") if isinstance(node, dict) else None
        capacity = status.get("capacity") if isinstance(status, dict) else None
        found.update(capacity if isinstance(capacity, dict) else {})
    known = [name for name in found if kind_of(str(name)) is not ResourceKind.NONE]
    if not known:
        raise SiteError("--nodes: none of these nodes has a GPU, name each with --resource")
    return tuple(sorted(known, key=lambda name: (order_of(name), name)))
