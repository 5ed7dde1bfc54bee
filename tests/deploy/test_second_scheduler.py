"""deploy/kustomize/overlays/secondary: two containers in one pod, and what each of them has."""

from __future__ import annotations

from typing import Any

import pytest
import shipped
import yaml

OVERLAY = shipped.KUSTOMIZE / "overlays" / "secondary"


@pytest.fixture
def pod() -> Any:
    """The pod's spec; nothing of the overlay patches it."""
    documents = yaml.safe_load_all((OVERLAY / "scheduler.yaml").read_text(encoding="utf-8"))
    (found,) = (each for each in documents if each["kind"] == "Deployment")
    return found["spec"]["template"]["spec"]


def _mounts(pod: Any, name: str) -> dict[str, str]:
    """Volumes of a container by their path."""
    (found,) = (
        each for each in (*pod["containers"], *pod["initContainers"]) if each["name"] == name
    )
    return {each["mountPath"]: each["name"] for each in found["volumeMounts"]}


def _with_token(pod: Any) -> set[str]:
    return {
        each["name"]
        for each in pod["volumes"]
        for source in each.get("projected", {}).get("sources", [])
        if "serviceAccountToken" in source
    }


def test_surefoot_has_no_token_of_kube_scheduler(pod: Any) -> None:
    """Its port is open to many, and that token binds and evicts pods."""
    assert pod["automountServiceAccountToken"] is False
    mounts = _mounts(pod, "surefoot")
    assert shipped.TOKEN not in mounts
    assert not _with_token(pod) & set(mounts.values())


def test_kube_scheduler_has_the_token_where_its_client_looks(pod: Any) -> None:
    """With the authority of the API server and the namespace, as Kubernetes would mount them."""
    (volume,) = _with_token(pod)
    assert _mounts(pod, "kube-scheduler")[shipped.TOKEN] == volume
    (projected,) = (each["projected"] for each in pod["volumes"] if each["name"] == volume)
    paths = set()
    for source in projected["sources"]:
        (kind,) = source.values()
        paths |= {each["path"] for each in kind.get("items", [kind])}
    assert paths == {"token", "ca.crt", "namespace"}


def test_the_two_containers_share_nothing_that_either_can_write(pod: Any) -> None:
    """The private key of kube-scheduler's own certificate lies in its /tmp."""
    shared = set(_mounts(pod, "surefoot").values()) & set(_mounts(pod, "kube-scheduler").values())
    assert shared == {"config"}
