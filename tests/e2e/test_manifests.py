"""deploy/kustomize as it is written: strictly valid, locked down, without a registry."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import shipped
import yaml
from asking import Json
from click.testing import CliRunner

from e2e.deployed import DEPLOYMENTS, FOLDERS, with_components
from extender.cli import main
from extender.version import VERSION


def _validated(folder: Path) -> list[Json]:
    """The objects of a kustomization, once kubernetes-validate has nothing against them."""
    tools = Path(sys.executable).parent
    built = subprocess.run(
        [tools / "kubectl", "kustomize", folder], capture_output=True, check=False, timeout=60
    )
    assert built.returncode == 0, built.stderr
    checked = subprocess.run(
        [tools / "kubernetes-validate", "--strict", "--no-warn", "-"],
        input=built.stdout,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stdout
    return [each for each in yaml.safe_load_all(built.stdout) if each]


def _deployments(objects: list[Json]) -> Iterator[tuple[str, Json]]:
    for each in objects:
        if each["kind"] == "Deployment":
            yield each["metadata"]["name"], each["spec"]


def _containers(objects: list[Json]) -> list[Json]:
    pods = [each["template"]["spec"] for _, each in _deployments(objects)]
    return [
        each for spec in pods for each in (*spec["containers"], *spec.get("initContainers", []))
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_object_is_strictly_valid(folder: str) -> None:
    """No field is misspelt, and there is one object of each name."""
    objects = _validated(shipped.KUSTOMIZE / folder)
    names = [(each["kind"], each["metadata"]["name"]) for each in objects]
    assert len(set(names)) == len(names)
    assert {name: spec["replicas"] for name, spec in _deployments(objects)} == DEPLOYMENTS[folder]


@pytest.mark.parametrize("folder", FOLDERS)
def test_images_are_bare_names_with_a_version(folder: str) -> None:
    """The registry is the user's; Surefoot's version is this one."""
    images = {each["image"] for each in _containers(_validated(shipped.KUSTOMIZE / folder))}
    assert all(re.fullmatch(r"[a-z-]+:v?\d[\w.]*", image) for image in images)
    assert f"surefoot:{VERSION}" in images


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_container_is_locked_down_probed_and_bounded(folder: str) -> None:
    """No root, no capability, nothing to write on; memory has a limit."""
    objects = _validated(shipped.KUSTOMIZE / folder)
    for _, deployment in _deployments(objects):
        pod_security = deployment["template"]["spec"]["securityContext"]
        assert pod_security["runAsNonRoot"] is True
        assert pod_security["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in _containers(objects):
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert {"readinessProbe", "livenessProbe"} <= set(container)
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        assert set(container["resources"]["limits"]) == {"memory"}


def test_what_render_config_writes_for_a_site_can_be_applied(tmp_path: Path) -> None:
    """Its files are in the ConfigMap, and every image comes from the site's registry."""
    words = (
        "render-config", "--profile", "secondary", "--resource", "nvidia.com/mig-1g.10gb",
        "--registry", "registry.example/ml", "--kustomize", str(shipped.KUSTOMIZE),
        "-o", str(tmp_path),
    )  # fmt: skip
    CliRunner().invoke(main, words, catch_exceptions=False)
    objects = _validated(tmp_path)
    (settings,) = (each for each in objects if each["kind"] == "ConfigMap")
    assert "nvidia.com/mig-1g.10gb" in settings["data"]["kube-scheduler.yaml"]
    images = {each["image"] for each in _containers(objects)}
    assert images == {
        f"registry.example/ml/surefoot:{VERSION}",
        "registry.example/ml/valkey:9.1",
        "registry.example/ml/kube-scheduler:v1.37.2",
    }


def test_the_service_is_where_kube_scheduler_asks(tmp_path: Path) -> None:
    """The address and the port of `--service` reach the Service, whichever it had."""
    words = (
        "render-config", "--profile", "tls", "--service", "https://10.96.7.7:9443",
        "--kustomize", str(shipped.KUSTOMIZE), "-o", str(tmp_path),
    )  # fmt: skip
    CliRunner().invoke(main, words, catch_exceptions=False)
    services = {
        each["metadata"]["name"]: each["spec"]
        for each in _validated(tmp_path)
        if each["kind"] == "Service"
    }
    assert services["surefoot"]["clusterIP"] == "10.96.7.7"
    assert [each["port"] for each in services["surefoot"]["ports"]] == [9443]
    assert "clusterIP" not in services["surefoot-cache"]


def test_components_add_to_the_base_and_change_nothing_of_it(tmp_path: Path) -> None:
    """Strictly valid together with it, and rights alone."""
    base = _validated(shipped.KUSTOMIZE / "base")
    more = [each for each in _validated(with_components(tmp_path / "site")) if each not in base]
    assert sorted(each["kind"] for each in more) == ["ClusterRole"] * 2 + ["ClusterRoleBinding"] * 2


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_binding_binds_a_role_and_an_account_that_are_there(folder: str) -> None:
    """Or one of Kubernetes' own: RBAC says nothing of a name that is misspelt."""
    objects = _validated(shipped.KUSTOMIZE / folder)
    there = {(each["kind"], each["metadata"]["name"]) for each in objects}
    for each in objects:
        if not each["kind"].endswith("Binding"):
            continue
        role = each["roleRef"]["kind"], each["roleRef"]["name"]
        assert role in there or role[1].startswith(("system:", "extension-apiserver-"))
        for subject in each["subjects"]:
            assert (subject["kind"], subject["name"]) in there


def test_the_gate_is_strictly_valid_and_stands_apart() -> None:
    """It is applied once the controller leads, and deleted without touching the rest."""
    kinds = [each["kind"] for each in _validated(shipped.KUSTOMIZE / "gate")]
    assert kinds == ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]


def test_the_policy_for_one_namespace_is_strictly_valid() -> None:
    """It stands apart from the rest, which is the same with and without it."""
    kinds = [each["kind"] for each in _validated(shipped.KUSTOMIZE / "one-namespace")]
    assert kinds == ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]
