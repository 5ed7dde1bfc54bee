"""How the pods of a test come by the gate `surefoot.dev/gang`: by deploy/kustomize/gate, or by template."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from http import HTTPStatus
from pathlib import Path
from typing import Final, Protocol

import shipped
from asking import Json

from e2e import versions
from e2e.api import ApiError
from e2e.cluster import MANIFESTS, Cluster
from e2e.pods import Pods, pod
from e2e.waiting import eventually
from scoring.gangs.rules import GATE

SINCE: Final = "1.36"
"""The first version with MutatingAdmissionPolicy v1."""
OVERLAY: Final = """\
resources: [{folder}]
patches:
- target: {{kind: MutatingAdmissionPolicyBinding}}
  patch: |
    - op: replace
      path: /spec/matchResources/namespaceSelector
      value: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
"""
"""For one namespace, as its user would lay it over the shipped one."""


class Gates(Protocol):
    """Makes bodies of pods and Jobs such that their pods will be gated."""

    def __call__(self, body: Json) -> Json:
        """As it is where the policy does it, else with the gate in its (template's) spec."""


def gated(body: Json) -> Json:
    """A pod, or a Job, with the gate in the spec of its pods."""
    made = deepcopy(body)
    spec = made["spec"].get("template", made)["spec"]
    spec["schedulingGates"] = [*spec.get("schedulingGates", []), {"name": GATE}]
    return made


def gates_of(body: Json) -> list[str]:
    """Every gate of a pod."""
    return [each["name"] for each in body["spec"].get("schedulingGates", [])]


def has_policies(cluster: Cluster) -> bool:
    """Whether this version can do without the gate in templates."""
    return versions.numbers(cluster.settings.version) >= versions.numbers(SINCE)


@contextmanager
def policy_for(cluster: Cluster, pods: Pods, directory: Path) -> Iterator[None]:
    """deploy/kustomize/gate for the namespace of a test, from when it works until the block ends."""
    directory.mkdir()
    folder = os.path.relpath(shipped.KUSTOMIZE / "gate", directory)
    overlay = OVERLAY.format(folder=folder, namespace=pods.namespace)
    (directory / "kustomization.yaml").write_text(overlay)
    cluster.apply(directory)
    try:
        eventually(lambda: _works(cluster, pods), "the policy adds the gate")
        yield
    finally:
        cluster.kubectl("delete", "--ignore-not-found", "--kustomize", directory)


@contextmanager
def gates_stay(cluster: Cluster, pods: Pods) -> Iterator[None]:
    """Until the block ends no gate of these pods can be lifted, by anybody."""
    text = (MANIFESTS / "gates-stay.yaml").read_text().replace("NAMESPACE", pods.namespace)
    cluster.kubectl("apply", "--server-side", "--filename=-", stdin=text)
    try:
        # Of a gang that is never whole: no leader frees it before the policy is heeded.
        pods.create(gated(pod("probe", gpus=0, gang="probe")))
        eventually(lambda: _is_refused(cluster, pods), "gates stay")
        pods.delete("probe")
        yield
    finally:
        cluster.kubectl("delete", "--ignore-not-found", "--filename=-", stdin=text)


def _is_refused(cluster: Cluster, pods: Pods) -> bool:
    """Whether a gate cannot be lifted, by a try that changes nothing."""
    try:
        cluster.api.merge(f"{pods.path}/probe?dryRun=All", {"spec": {"schedulingGates": None}})
    except ApiError as error:
        return error.status == HTTPStatus.UNPROCESSABLE_ENTITY
    return False


def _works(cluster: Cluster, pods: Pods) -> bool:
    probe = pod("probe", gang="probe", size=1)
    made = cluster.api.create(f"{pods.path}?dryRun=All", probe)
    return GATE in gates_of(made)
