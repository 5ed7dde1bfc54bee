"""`surefoot render-config`: what it writes, where, and what it says of wishes that cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from commands import Surefoot

from extender.rendering import files
from extender.rendering.shapes import Name


@pytest.fixture
def surefoot(offline: Surefoot) -> Surefoot:
    """None of this needs a cache."""
    return offline


def test_without_options_it_prints_the_recommended_file(surefoot: Surefoot) -> None:
    """Ready for `kube-scheduler --config`."""
    told = surefoot("render-config")
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout == files.shipped()["scheduler-config/extender.yaml"]


@pytest.mark.parametrize("name", [*Name], ids=str)
def test_every_profile_is_printed_for_either_reader(surefoot: Surefoot, name: Name) -> None:
    """`--for` chooses whose file."""
    shipped = files.shipped()
    for reader, path in (("kube-scheduler", f"{name}.yaml"), ("surefoot", f"surefoot/{name}.yaml")):
        told = surefoot("render-config", "--profile", name.value, "--for", reader)
        assert told.stdout == shipped[f"scheduler-config/{path}"]


def test_a_folder_takes_every_file(surefoot: Surefoot, tmp_path: Path) -> None:
    """As they are shipped."""
    assert surefoot("render-config", "-o", str(tmp_path / "new")).exit_code == 0
    written = {
        str(file.relative_to(tmp_path / "new")): file.read_text(encoding="utf-8")
        for file in (tmp_path / "new").rglob("*.yaml")
    }
    prefix = "scheduler-config/"
    assert written == {
        name.removeprefix(prefix): text
        for name, text in files.shipped().items()
        if name.startswith(prefix)
    }


def test_wishes_reach_both_files(surefoot: Surefoot) -> None:
    """Resources, address, policy and kubeconfig stand where they belong, and in the head."""
    wishes = (
        "render-config", "--policy", "closed", "--service", "http://10.9.8.7:8888/",
        "--resource", "nvidia.com/mig-1g.10gb", "--resource", "nvidia.com/gpu",
        "--resource", "nvidia.com/mig-1g.10gb", "--kubeconfig", "/etc/other.conf",
    )  # fmt: skip
    told = surefoot(*wishes)
    config = yaml.safe_load(told.stdout)
    (extender,) = config["extenders"]
    assert [each["name"] for each in extender["managedResources"]] == [
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/gpu",
    ]
    assert extender["urlPrefix"] == "http://10.9.8.7:8888"
    assert extender["ignorable"] is False
    assert config["clientConnection"]["kubeconfig"] == "/etc/other.conf"
    head = " ".join(line.strip("# ") for line in told.stdout.splitlines()[:8])
    assert "--resource nvidia.com/mig-1g.10gb --resource nvidia.com/gpu" in head
    assert "--service http://10.9.8.7:8888 --policy closed --kubeconfig /etc/other.conf" in head
    settings = yaml.safe_load(surefoot(*wishes, "--for", "surefoot").stdout)
    assert settings["webhook"]["failurePolicy"] == "closed"


def test_resources_come_from_nodes(surefoot: Surefoot) -> None:
    """Each GPU resource that a node of the cluster has, whole GPUs first."""
    capacities: tuple[dict[str, str], ...] = (
        {"cpu": "8", "nvidia.com/mig-3g.40gb": "2", "nvidia.com/gpumem": "9"},
        {"nvidia.com/gpu": "8", "nvidia.com/mig-1g.10gb": "7", "nvidia.com/gpu.shared": "4"},
        {},
    )
    nodes = {"kind": "List", "items": [{"status": {"capacity": each}} for each in capacities]}
    told = surefoot("render-config", "--nodes", "-", stdin=json.dumps(nodes))
    (extender,) = yaml.safe_load(told.stdout)["extenders"]
    assert [each["name"] for each in extender["managedResources"]] == [
        "nvidia.com/gpu",
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/mig-3g.40gb",
        "nvidia.com/gpu.shared",
    ]


def test_one_profile_in_a_folder_can_be_applied(surefoot: Surefoot, tmp_path: Path) -> None:
    """With a kustomization that takes these files, and images from the site's registry."""
    told = surefoot(
        "render-config", "--profile", "secondary", "--registry", "registry.example:5000/ml",
        "--kustomize", str(tmp_path / "kustomize"), "-o", str(tmp_path / "site"),
    )  # fmt: skip
    assert told.exit_code == 0
    site = yaml.safe_load((tmp_path / "site/kustomization.yaml").read_text(encoding="utf-8"))
    assert site["resources"] == ["../kustomize/overlays/secondary"]
    assert {each["name"]: each["newName"] for each in site["images"]} == {
        name: f"registry.example:5000/ml/{name}"
        for name in ("surefoot", "valkey", "kube-scheduler")
    }
    (generator,) = site["configMapGenerator"]
    assert generator["behavior"] == "replace"
    assert generator["files"] == [
        "kube-scheduler.yaml=secondary.yaml",
        "surefoot.yaml=surefoot/secondary.yaml",
    ]
    assert (tmp_path / "site/secondary.yaml").is_file()
    assert (tmp_path / "site/surefoot/secondary.yaml").is_file()


@pytest.mark.parametrize(
    ("profile", "service", "wanted"),
    [
        ("tls", "https://10.96.7.7:8888", {"/spec/clusterIP": "10.96.7.7"}),
        ("tls", "https://10.96.7.7", {"/spec/clusterIP": "10.96.7.7", "/spec/ports/0/port": 443}),
        ("tls", "https://[fd00::7]:8888", {"/spec/clusterIP": "fd00::7"}),
        ("tls", "https://surefoot.surefoot-system.svc:9443", {"/spec/ports/0/port": 9443}),
        ("tls", "https://surefoot.surefoot-system.svc:8888", {}),
        ("tls", "https://10.96.0.88:8888", {}),
        ("extender", "http://10.96.7.7:8888", {"/spec/clusterIP": "10.96.7.7"}),
        ("extender", "http://127.0.0.1:9999", {}),
        ("extender", "http://balancer.example:80", {}),
        ("extender", "http://10.96.7.7/ingress", {}),
        ("secondary", "http://10.96.7.7:8888", {}),
    ],
)
def test_the_service_gets_the_address_that_kube_scheduler_is_told(
    surefoot: Surefoot, tmp_path: Path, profile: str, service: str, wanted: dict[str, str | int]
) -> None:
    """Elsewhere nobody would answer, and `ignorable: true` would say nothing of it."""
    told = surefoot(
        "render-config", "--profile", profile, "--service", service, "-o", str(tmp_path)
    )
    assert told.exit_code == 0
    site = yaml.safe_load((tmp_path / "kustomization.yaml").read_text(encoding="utf-8"))
    patches = site.get("patches", [])
    assert all(each["target"] == {"kind": "Service", "name": "surefoot"} for each in patches)
    operations = [operation for each in patches for operation in json.loads(each["patch"])]
    assert {each["path"]: each["value"] for each in operations} == wanted


def test_a_name_of_the_clusters_dns_is_noted(surefoot: Surefoot) -> None:
    """It is right for a kube-scheduler in a pod of the cluster, and wrong for a static one."""
    told = surefoot("render-config", "--service", "http://surefoot.surefoot-system.svc:8888")
    assert told.exit_code == 0
    assert told.stderr.startswith("note: ")
    assert surefoot("render-config", "--service", "http://localhost:8888").stderr == ""


@pytest.mark.parametrize(
    ("wishes", "named"),
    [
        ("--resource gpu", "--resource gpu: no GPU"),
        ("--resource nvidia.com/gpumem", "--resource nvidia.com/gpumem: no GPU"),
        ("--resource nvidia.com/mig-1g.10gb+me", "nvidia.com/mig-1g.10gb+me: kube-scheduler takes"),
        (f"--resource nvidia.com/mig-{'1' * 60}", "1: kube-scheduler takes"),
        ("--service 10.0.0.1:8888", "--service 10.0.0.1:8888: is no address"),
        ("--service http://10.0.0.1:99999", ": is no address"),
        ("--service http://[::1", ": is no address"),
        ("--service http://10.0.0.1/?a=b", ": is no address"),
        ("--service https://10.0.0.1:8888", "use --profile tls"),
        ("--profile tls --service http://10.0.0.1:8888", "--profile tls takes https://"),
        ("--service http://me:secret@10.0.0.1", "kube-scheduler sends no password"),
        ("--profile fail-open --policy closed", "contradicts --profile fail-open"),
        ("--profile fail-closed --policy open", "contradicts --profile fail-closed"),
        ("--profile observe --policy closed", "contradicts --profile observe"),
        ("--profile tls --profile observe", "need a folder"),
        ("--profile tls --profile observe -o FOLDER --policy open", "--policy: for one profile"),
        ("-o FOLDER --service http://10.0.0.1 --registry r.example", "--service, --registry: for"),
        ("--registry r.example", "--registry: only manifests have images"),
        ("--profile tls -o FOLDER --registry https://r.example", "is no registry"),
        ("--profile tls -o FOLDER --service https://gpu.example:8888", "Service that -o installs"),
        ("--profile tls -o FOLDER --service https://127.0.0.1:8888", "Service that -o installs"),
        ("--profile tls -o FOLDER --service https://10.0.0.1/sub", "Service that -o installs"),
        ("--nodes nowhere.json", "nowhere.json"),
        ("--nodes README.md", "README.md: not JSON"),
    ],
)
def test_a_wish_that_cannot_be_is_one_sentence(
    surefoot: Surefoot, tmp_path: Path, wishes: str, named: str
) -> None:
    """Exit code 2; nothing is printed or written."""
    folder = tmp_path / "out"
    told = surefoot("render-config", *wishes.replace("FOLDER", str(folder)).split())
    assert (told.exit_code, told.stdout, folder.exists()) == (2, "", False)
    (line,) = told.stderr.splitlines()
    assert line.startswith("error: ")
    assert named in line
    assert "secret" not in line


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[]", "is no list of nodes"),
        ('{"kind": "PodList", "items": []}', "is no list of nodes"),
        ('{"kind": "List"}', "none of these nodes has a GPU"),
        ('{"kind": "List", "items": [1, {"status": 2}, {"status": {"capacity": 3}}]}', "none of"),
        ('{"kind": "Node", "status": {"capacity": {"cpu": "1"}}}', "none of these nodes"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_nodes_that_are_none_are_one_sentence(surefoot: Surefoot, text: str, named: str) -> None:
    """Whatever stands in the file."""
    told = surefoot("render-config", "--nodes", "-", stdin=text)
    assert (told.exit_code, told.stdout) == (2, "")
    assert named in told.stderr


def test_a_folder_that_cannot_be_written_is_exit_code_1(surefoot: Surefoot) -> None:
    """With its name and the reason."""
    told = surefoot("render-config", "--profile", "tls", "-o", "/proc/nowhere")
    assert told.exit_code == 1
    assert "/proc/nowhere" in told.stderr
