"""The KubeSchedulerConfiguration of a site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from extender.config.model import FailurePolicy
from extender.rendering.lines import Block, Items, Line, page
from extender.rendering.shapes import Profile
from extender.rendering.site import Site

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
NAMESPACE: Final = "surefoot-system"
SERVER_NAME: Final = f"surefoot.{NAMESPACE}.svc"
"""The name in the certificate of the Service, whatever its address is."""
CERTIFICATES: Final = "/etc/kubernetes/pki/surefoot"

_WEIGHT: Final = 20

_NEAR: Final = """\
Surefoot on this machine or in this pod. Elsewhere: the ClusterIP of its Service, not its name, since a \
static pod has no cluster DNS (`render-config --service`)."""
_SAME_POD: Final = "The container beside this one: no network, no DNS, one fate."
_GIVEN: Final = """\
Where Surefoot is. An address, not a name of the cluster, where this kube-scheduler is a static pod: \
that one has no cluster DNS."""
_FIXED: Final = """\
The ClusterIP that the Service was given (deploy/kustomize/overlays/tls): a static pod has no cluster \
DNS. Another one: `render-config --service`."""

_IGNORABLE: Final[Mapping[tuple[FailurePolicy, bool], str]] = {
    (FailurePolicy.OPEN, True): """\
When no replica answers: go on without Surefoot. Extenders are shared, so this holds for GPU pods of \
both profiles. It goes with `failurePolicy: open`.""",
    (FailurePolicy.OPEN, False): """\
When Surefoot does not answer: go on without it. It goes with `failurePolicy: open`.""",
    (FailurePolicy.CLOSED, True): """\
When no replica answers: let GPU pods wait, also those of the other profile, since extenders are \
shared. It goes with `failurePolicy: closed`.""",
    (FailurePolicy.CLOSED, False): """\
When Surefoot does not answer: let GPU pods of this kube-scheduler wait. It goes with \
`failurePolicy: closed`.""",
}
"""Why `ignorable` is what it is, by policy and by whether others share the extender."""


def scheduler_page(site: Site) -> str:
    """The file for `kube-scheduler --config`."""
    about = f"{site.shape.about} Its SurefootConfig is surefoot/{site.name}.yaml.\n\n{site.command}"
    return page(
        about,
        (
            Line("apiVersion", API_VERSION),
            Line("kind", "KubeSchedulerConfiguration"),
            Line("clientConnection", _connection(site)),
            Line("leaderElection", _election(site)),
            Line("profiles", Items(tuple(_profile(each) for each in site.shape.profiles))),
            Line("extenders", Items((_extender(site),))),
        ),
    )


def _connection(site: Site) -> Block:
    rates = (
        Line("qps", 2000, "A burst of gangs binds at once; the default of 50 would be the limit."),
        Line("burst", 4000, "Twice that, as usual."),
    )
    if site.shape.lease:
        return rates  # without a kubeconfig: the pod's ServiceAccount
    why = "The flag --kubeconfig is ignored beside --config, so the path stands here."
    return (Line("kubeconfig", site.kubeconfig, why), *rates)


def _election(site: Site) -> Block:
    elect = Line(
        "leaderElect", True, "One of several decides. The flag --leader-elect wins over this line."
    )
    if not site.shape.lease:
        return (elect,)
    return (
        elect,
        Line("resourceName", site.shape.lease, "Its own lease: the first kube-scheduler has its."),
        Line("resourceNamespace", NAMESPACE, "Where its Role lets it write one."),
    )


def _profile(profile: Profile) -> Block:
    named = Line("schedulerName", profile.scheduler, profile.why)
    if not profile.every_node:
        return (named,)
    args = (
        Line("apiVersion", API_VERSION),
        Line("kind", "DefaultPreemptionArgs"),
        Line(
            "minCandidateNodesPercentage",
            100,
            "Preemption tries one node in ten by default, and may miss the healthy ones.",
        ),
    )
    return (
        named,
        Line(
            "percentageOfNodesToScore",
            100,
            "Surefoot sees only nodes that are offered: at 5,000, one in ten by default.",
        ),
        Line("pluginConfig", Items(((Line("name", "DefaultPreemption"), Line("args", args)),))),
    )


def _extender(site: Site) -> Block:
    policy, shape = site.policy, site.shape
    return (
        Line("urlPrefix", site.service, _where(site)),
        Line("filterVerb", "filter", "POST /filter: which nodes are fit."),
        Line("prioritizeVerb", "prioritize", "POST /prioritize: how good each one is, 0 to 10."),
        Line(
            "preemptVerb",
            "preempt",
            "POST /preempt: without it pods may be evicted from nodes that Surefoot refuses.",
        ),
        Line(
            "weight",
            _WEIGHT,
            "Scores count 10 x weight x 10 = 2000 at most: above all default plugins together.",
        ),
        *(_tls() if shape.tls else ()),
        Line(
            "nodeCacheCapable",
            True,
            "Names travel, not whole Node objects of about 16 kB each.",
        ),
        Line(
            "managedResources",
            Items(tuple(_managed(name) for name in site.resources)),
            "Only pods that ask for one of these are sent. No patterns: each MIG profile in use is "
            "listed. Surefoot's own pods ask for none, so they never wait for themselves.",
        ),
        Line(
            "httpTimeout",
            f"{shape.timeout_s}s",
            "5 s by default. kube-scheduler decides on one pod at a time, so a call that hangs holds "
            "up every pod, with GPUs or without. Surefoot takes milliseconds.",
        ),
        Line("ignorable", policy is FailurePolicy.OPEN, _IGNORABLE[policy, shape.shares]),
    )


def _where(site: Site) -> str:
    if site.shape.lease:
        return _SAME_POD
    if site.service != site.shape.service:
        return _GIVEN
    return _FIXED if site.shape.tls else _NEAR


def _tls() -> Block:
    files = (
        Line("serverName", SERVER_NAME, "The certificate has this name; the address is not in it."),
        Line(
            "caFile",
            f"{CERTIFICATES}/ca.crt",
            "Who signed it. Without a CA kube-scheduler verifies nothing, and does not say so. Mount "
            "this folder into the static pod, and restart it when this file changes.",
        ),
        Line(
            "certFile",
            f"{CERTIFICATES}/client.crt",
            "By this Surefoot knows kube-scheduler. Read again when it is renewed.",
        ),
        Line("keyFile", f"{CERTIFICATES}/client.key", "Of that certificate."),
    )
    return (
        Line("enableHTTPS", True, "urlPrefix says https; this says it to kube-scheduler."),
        Line("tlsConfig", files),
    )


def _managed(name: str) -> Block:
    return (
        Line("name", name),
        Line(
            "ignoredByScheduler", False, "kube-scheduler still counts them; Surefoot only judges."
        ),
    )
