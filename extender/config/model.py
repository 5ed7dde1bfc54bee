"""The shape of the configuration (`surefoot.dev/v1alpha1`, `SurefootConfig`).

The docstring under each field becomes docs/configuration.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, field_serializer, field_validator, model_validator
from pydantic.alias_generators import to_camel

from extender.config.policies import Duration, PolicySection, Section
from scoring.gangs.rules import GangRules, Hold, OnShortfall
from scoring.model import Convention, WorkClass
from scoring.xid.rules import RuleError, rules_of

API_VERSION: Final = "surefoot.dev/v1alpha1"
KIND: Final = "SurefootConfig"
_PASSWORD: Final = re.compile(r"(://[^:@/?]*):[^?\s]*@")
_QUERY_PASSWORD: Final = re.compile(r"([?&]password=)[^&#]*")
_ADDRESS: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]*):(?P<port>\d{1,5})\Z")


class Mode(StrEnum):
    """Whether Surefoot's word counts."""

    OBSERVE = "observe"
    ENFORCE = "enforce"


class FailurePolicy(StrEnum):
    """What is answered without a usable snapshot."""

    OPEN = "open"
    CLOSED = "closed"


class UnknownNodes(StrEnum):
    """Which pods may use nodes that nobody reports."""

    PASS = "pass"
    SINGLE = "single"
    VETO = "veto"

    @property
    def admits(self) -> frozenset[WorkClass]:
        """The kinds of pods that may."""
        return _ADMITTED[self]


_ADMITTED: Final[Mapping[UnknownNodes, frozenset[WorkClass]]] = MappingProxyType(
    {
        UnknownNodes.PASS: frozenset(WorkClass),
        UnknownNodes.SINGLE: frozenset({WorkClass.SINGLE}),
        UnknownNodes.VETO: frozenset(),
    }
)


class LogFormat(StrEnum):
    """How logs are written."""

    JSON = "json"
    CONSOLE = "console"


class _Documented(Section):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
        alias_generator=to_camel,
    )


def address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`, `:port` or `[v6]:port`.

    Raises:
        ValueError: with a sentence.
    """
    match = _ADDRESS.match(text)
    if match is None or int(match["port"]) > 65_535:
        raise ValueError(f"{text!r} is no address, write it like 127.0.0.1:8888 or [::1]:8888")
    return match["host"].strip("[]"), int(match["port"])


class WebhookTlsConfig(_Documented):
    """HTTPS instead of HTTP. Files are PEM; one that is replaced counts from the next connection on."""

    cert: str
    """File of the server's certificate, with the chain to its authority."""
    key: str
    """File of its key, without a password."""
    client_ca: str | None = None
    """File of the authorities that sign clients: then POST needs a client certificate, and GET (the
    kubelet's probes, Prometheus) does not. Missing: nobody needs one."""


class WebhookConfig(_Documented):
    """What kube-scheduler meets."""

    bind: str = "127.0.0.1:8888"
    """Address to listen on, `host:port`; port 0 picks a free one. Also `serve --bind`."""
    tls: WebhookTlsConfig | None = None
    """Serve HTTPS; plain HTTP where it is missing."""
    mode: Mode = Mode.OBSERVE
    """`observe`: every node passes, scores are 0, victims stay, and decisions record what would
    have been. `enforce`: the answers count."""
    scheduler_names: tuple[str, ...] = ()
    """Pods of these schedulers are judged, the others get every node back. Empty: all."""
    failure_policy: FailurePolicy = FailurePolicy.OPEN
    """Without a usable snapshot: `open` passes every node, `closed` refuses every node."""
    unknown_nodes: UnknownNodes = UnknownNodes.SINGLE
    """Nodes without a document: `pass` them, pass them for `single` pods, or `veto` them."""
    narrow: Annotated[int, Field(ge=0, le=100_000)] = 32
    """How many of the best nodes /filter returns when some pass; 0 returns all that pass. Set 0
    where another extender follows that must see every node."""
    max_snapshot_age: Duration = 300.0
    """How long a replica that is cut off from Redis serves its last snapshot."""

    @field_validator("bind")
    @classmethod
    def _listens(cls, value: str) -> str:
        address(value)
        return value


class SentinelConfig(_Documented):
    """A primary that Redis Sentinel names."""

    hosts: Annotated[tuple[str, ...], Field(min_length=1)]
    """Sentinels, each `host:port`."""
    service: Annotated[str, Field(min_length=1)]
    """The name of the primary that they watch."""

    @field_validator("hosts")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for host in value:
            address(host)
        return value


class TlsConfig(_Documented):
    """TLS towards Redis. Files are PEM."""

    ca: str | None = None
    """File of the authorities to trust; the system's where it is missing."""
    cert: str | None = None
    """File of the client's certificate, for mutual TLS."""
    key: str | None = None
    """File of its key."""

    @model_validator(mode="after")
    def _paired(self) -> Self:
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key come together")
        return self


class StoreConfig(_Documented):
    """The Redis or Valkey that holds the cache: one primary, or Sentinel; not Redis Cluster."""

    url: str = "redis://localhost:6379/0"
    """`redis://`, `rediss://` (TLS) or `unix://`; ignored with `sentinel`. A password in it is never
    printed."""
    sentinel: SentinelConfig | None = None
    """Ask these Sentinels for the primary instead of using `url`."""
    username: str | None = None
    """ACL user."""
    password_file: str | None = None
    """File that holds the password; read again at every connection, so it can be rotated."""
    tls: TlsConfig | None = None
    """TLS settings; with `sentinel` their presence turns TLS on."""

    @field_serializer("url", when_used="json")
    def _without_password(self, url: str) -> str:
        return _QUERY_PASSWORD.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))

    @field_validator("url")
    @classmethod
    def _is_redis(cls, value: str) -> str:
        if not re.match(r"(redis|rediss)://[^\s/]+|unix://\S+", value):
            raise ValueError("must begin with redis://, rediss:// or unix:// and name a server")
        try:
            # Reading the port checks it. The error is not told: it may quote part of a password.
            _ = urlsplit(value).port
        except ValueError:
            raise ValueError(
                "names no server and port, write it like redis://cache:6379/0 or "
                "redis://[::1]:6379/0, with what is special in a password percent-encoded"
            ) from None
        return value


class KubeConfig(_Documented):
    """The API server. Without a word here: the kubeconfig that the variable KUBECONFIG names, else
    the service account of the pod, else `~/.kube/config`.
    """

    kubeconfig: str | None = None
    """File to read instead."""
    context: str | None = None
    """Context of the kubeconfig, instead of its current one."""


class LeaseConfig(_Documented):
    """The Lease by which one controller leads and the others stand by."""

    name: Annotated[str, Field(min_length=1)] = "surefoot-controller"
    """Its name."""
    namespace: str | None = None
    """Its namespace. Missing: that of the pod, `surefoot` outside of the cluster."""
    duration: Annotated[Duration, Field(ge=1.0)] = 15.0
    """How long after its last renewal a leader is taken for dead. It stops writing after two thirds
    of that."""
    retry: Annotated[Duration, Field(ge=0.1)] = 2.0
    """How often the leader renews, and the others look."""

    @model_validator(mode="after")
    def _renews_in_time(self) -> Self:
        if self.retry > self.duration / 3:
            raise ValueError("retry must not be longer than a third of duration")
        return self


class ControllerConfig(_Documented):
    """What `surefoot controller` does."""

    bind: str = "127.0.0.1:8889"
    """Address of its /livez, /readyz and /metrics, `host:port`; port 0 picks a free one. Also
    `controller --bind`."""
    mode: Mode = Mode.ENFORCE
    """`observe`: the cache is kept and gangs are planned for /gangs to see, and no pod or node is
    touched. `enforce`: nominations, gates, wake-ups, events and node conditions, too."""
    lease: LeaseConfig = LeaseConfig()
    taint: bool = False
    """Whether nodes that are unfit for every gang get the taint `surefoot.dev/unfit:NoSchedule`."""

    @field_validator("bind")
    @classmethod
    def _listens(cls, value: str) -> str:
        address(value)
        return value


class GangsConfig(_Documented):
    """Which gangs are planned as a whole, and what becomes of those that do not fit."""

    plan: dict[Convention, Hold] = Field(
        default_factory=lambda: {Convention.SUREFOOT: Hold.REQUIRE}
    )
    """By convention: `require` (a member passes on its planned node only, and nowhere without a
    plan), `prefer` (the planned node comes first) or `off`. Conventions that are missing are off."""
    on_shortfall: OnShortfall = OnShortfall.WAIT
    """Where a gang does not fit: `wait`, `autoscale` (lift its gates after `autoscaleAfter`, so that
    autoscalers see its pods) or `preempt` (plan it with pods of lower priority counted free). Pods
    choose for themselves by the annotation `surefoot.dev/on-shortfall`."""
    autoscale_after: Duration = 60.0
    """How long a gang has no plan before its gates are lifted for autoscalers."""
    partial_after: Duration = 600.0
    """How long a gang may run with fewer members than it needs before that is reported."""
    release_partial: bool = False
    """Whether the members of such a gang are then evicted, so that others may use their GPUs."""

    @property
    def rules(self) -> GangRules:
        """The same as a value."""
        return GangRules(
            plan=self.plan,
            on_shortfall=self.on_shortfall,
            autoscale_after_s=self.autoscale_after,
            partial_after_s=self.partial_after,
            release_partial=self.release_partial,
        )


class LogConfig(_Documented):
    """Logs go to standard error."""

    format: LogFormat = LogFormat.JSON
    """`json` for machines, `console` for people."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Each decision is one line at `info`; what was refused, and lost connections, at `warning`."""


class SurefootConfig(_Documented):
    """The whole file."""

    api_version: Literal["surefoot.dev/v1alpha1"] = API_VERSION
    """The version of this shape."""
    kind: Literal["SurefootConfig"] = KIND
    """The name of this shape."""
    webhook: WebhookConfig = WebhookConfig()
    store: StoreConfig = StoreConfig()
    kube: KubeConfig = KubeConfig()
    controller: ControllerConfig = ControllerConfig()
    gangs: GangsConfig = GangsConfig()
    log: LogConfig = LogConfig()
    xid: dict[str, str] = Field(default_factory=dict)
    """The site's own effect of single codes over the tables of docs/health.md, as `xid.63: DEGRADED`
    or `xid.109: RECORD`."""
    policy: PolicySection = PolicySection()  # type: ignore[valid-type]

    @field_validator("xid")
    @classmethod
    def _rules(cls, value: dict[str, str]) -> dict[str, str]:
        problems = []
        for code, word in value.items():
            try:
                rules_of({code: word})
            except RuleError as error:
                problems.append(str(error))
        if problems:
            raise ValueError("\n".join(problems))
        return value
