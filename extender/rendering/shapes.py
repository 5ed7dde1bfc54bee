"""The kinds of set-up, and in what they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from extender.config.model import FailurePolicy, Mode

SUREFOOT: Final = "surefoot"
"""The `schedulerName` of pods that want to be judged."""
DEFAULT: Final = "default-scheduler"
NEAR: Final = "http://127.0.0.1:8888"
"""On the same machine, or in the same pod."""
FAR: Final = "https://10.96.0.88:8888"
"""In the lowest 256 addresses of kubeadm's default range, which are given away last."""


class Name(StrEnum):
    """What `--profile` takes; also the file's name."""

    EXTENDER = "extender"
    ALL_GPU_PODS = "all-gpu-pods"
    SECONDARY = "secondary"
    FAIL_OPEN = "fail-open"
    FAIL_CLOSED = "fail-closed"
    TLS = "tls"
    OBSERVE = "observe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One profile of the kube-scheduler."""

    scheduler: str
    why: str
    every_node: bool
    """Whether it offers every node to Surefoot, or keeps its sampling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One kind of set-up."""

    about: str
    profiles: tuple[Profile, ...]
    judged: tuple[str, ...] = ()
    """Schedulers whose pods Surefoot judges; empty: all."""
    mode: Mode = Mode.ENFORCE
    policy: FailurePolicy = FailurePolicy.OPEN
    policy_is_its_name: bool = False
    """Whether another policy would belie the name."""
    service: str = NEAR
    tls: bool = False
    timeout_s: int = 2
    lease: str = ""
    """Of a kube-scheduler that runs as a pod of its own, in Surefoot's namespace."""

    @property
    def shares(self) -> bool:
        """Whether pods that Surefoot does not judge pass through the same extender."""
        return len(self.profiles) > len(self.judged) > 0


_SAMPLES: Final = Profile(
    scheduler=DEFAULT,
    why="Every other pod. This profile keeps its sampling of nodes, and its speed.",
    every_node=False,
)
_JUDGED: Final = Profile(
    scheduler=SUREFOOT,
    why="Pods that say `schedulerName: surefoot`.",
    every_node=True,
)
_TWO: Final = (_SAMPLES, _JUDGED)

SHAPES: Final[Mapping[Name, Shape]] = MappingProxyType(
    {
        Name.EXTENDER: Shape(
            about="""Recommended: one kube-scheduler, two profiles. Pods that say \
`schedulerName: surefoot` are judged; the others go their way as before, GPU pods too.""",
            profiles=_TWO,
            judged=(SUREFOOT,),
        ),
        Name.ALL_GPU_PODS: Shape(
            about="""Every GPU pod is judged, whatever it says. No job has to change; every pod of \
this kube-scheduler pays for looking at all nodes.""",
            profiles=(
                Profile(
                    scheduler=DEFAULT,
                    why="The one that pods have which name none.",
                    every_node=True,
                ),
            ),
        ),
        Name.SECONDARY: Shape(
            about="""A second kube-scheduler, with Surefoot in the same pod: for control planes \
whose kube-scheduler is not yours to configure (deploy/kustomize/overlays/secondary runs it). The \
first one knows nothing of Surefoot, so nothing here can hold up its pods.""",
            profiles=(
                Profile(
                    scheduler=SUREFOOT,
                    why="Only this name: two schedulers must never take the same pod.",
                    every_node=True,
                ),
            ),
            judged=(SUREFOOT,),
            lease="surefoot-scheduler",
        ),
        Name.FAIL_OPEN: Shape(
            about="""As extender.yaml, by name: while Surefoot cannot judge, GPU pods are \
scheduled without it.""",
            profiles=_TWO,
            judged=(SUREFOOT,),
            policy_is_its_name=True,
        ),
        Name.FAIL_CLOSED: Shape(
            about="""As extender.yaml, but while Surefoot cannot judge, GPU pods wait: those of \
BOTH profiles, because kube-scheduler shares its extenders among them. Where the others must go on, \
take secondary.yaml with `--policy closed`.""",
            profiles=_TWO,
            judged=(SUREFOOT,),
            policy=FailurePolicy.CLOSED,
            policy_is_its_name=True,
        ),
        Name.TLS: Shape(
            about="""As extender.yaml, over HTTPS with certificates of both sides.""",
            profiles=_TWO,
            judged=(SUREFOOT,),
            service=FAR,
            tls=True,
        ),
        Name.OBSERVE: Shape(
            about="""To begin with: Surefoot sees every GPU pod, records what it would have done, \
and changes nothing. docs/scheduler.md has the next steps.""",
            profiles=(
                Profile(
                    scheduler=DEFAULT,
                    why="As it was: nothing about it changes while Surefoot only watches.",
                    every_node=False,
                ),
            ),
            mode=Mode.OBSERVE,
            policy_is_its_name=True,
            timeout_s=1,
        ),
    }
)
