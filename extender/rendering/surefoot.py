"""The SurefootConfig that goes with a site's kube-scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from extender.config.model import API_VERSION, KIND, FailurePolicy, Mode
from extender.rendering.lines import Block, Line, Words, page
from extender.rendering.shapes import Shape
from extender.rendering.site import Site

CERTIFICATES: Final = "/etc/surefoot-tls"

_MODES: Final[Mapping[Mode, str]] = {
    Mode.OBSERVE: "Every node passes, scores are 0, victims stay. Decisions are recorded.",
    Mode.ENFORCE: "The answers count. `observe` first: docs/scheduler.md has the steps.",
}
_JUDGED: Final = "Pods of others get every node back: extenders are shared among profiles."
_ALONE: Final = "The one profile of the kube-scheduler beside it."
_ALL: Final = "Empty: pods of every scheduler."
_POLICIES: Final[Mapping[FailurePolicy, str]] = {
    FailurePolicy.OPEN: """\
Without a usable snapshot every node passes. It goes with `ignorable: true`, which speaks when nobody \
answers.""",
    FailurePolicy.CLOSED: """\
Without a usable snapshot every node is refused, with a reason that says so. It goes with \
`ignorable: false`, which speaks when nobody answers.""",
}


def surefoot_page(site: Site) -> str:
    """The file for `surefoot serve --config`."""
    return page(
        f"Surefoot's own settings beside kube-scheduler's {site.name}.yaml.\n\n{site.command}",
        (
            Line("apiVersion", API_VERSION),
            Line("kind", KIND),
            Line("webhook", _webhook(site)),
            Line("store", _STORE),
            Line("controller", _controller(site.shape)),
        ),
    )


_STORE: Final[Block] = (
    Line("url", "redis://surefoot-cache:6379/0", "The Service in Surefoot's namespace."),
    Line(
        "passwordFile",
        "/etc/surefoot-cache/password",
        "From the Secret surefoot-cache. Read at every connection, so it can be rotated.",
    ),
)

_ACTS: Final[Mapping[Mode, str]] = {
    Mode.OBSERVE: "Gangs are planned, for /gangs to show; no pod and no node is touched.",
    Mode.ENFORCE: "Gangs are nominated, gates lifted, pods woken.",
}


def _controller(shape: Shape) -> Block:
    return (
        Line(
            "bind", "0.0.0.0:8889", "The kubelet's probes and Prometheus come from outside the pod."
        ),
        Line("mode", str(shape.mode), _ACTS[shape.mode]),
    )


def _webhook(site: Site) -> Block:
    shape, policy = site.shape, site.policy
    return (
        Line("bind", "0.0.0.0:8888", _bind(shape)),
        Line("mode", str(shape.mode), _MODES[shape.mode]),
        Line("schedulerNames", Words(shape.judged), _names(shape)),
        Line("failurePolicy", str(policy), _POLICIES[policy]),
        *((Line("tls", _TLS),) if shape.tls else ()),
    )


def _bind(shape: Shape) -> str:
    if shape.lease:
        return "kube-scheduler comes by 127.0.0.1, the kubelet's probes by the pod's address."
    return "kube-scheduler and the kubelet's probes come from outside the pod."


def _names(shape: Shape) -> str:
    if not shape.judged:
        return _ALL
    return _JUDGED if shape.shares else _ALONE


_TLS: Final[Block] = (
    Line("cert", f"{CERTIFICATES}/tls.crt", "With the name surefoot.surefoot-system.svc in it."),
    Line("key", f"{CERTIFICATES}/tls.key", "Of that certificate."),
    Line(
        "clientCa",
        f"{CERTIFICATES}/ca.crt",
        "Who signs clients: without a certificate of theirs nobody may POST. GET needs none, so the "
        "kubelet's probes and Prometheus come in.",
    ),
)
