"""Where the API server is: the first place that says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kubes import kubeconfig

from extender.kube.errors import KubeError
from extender.kube.settings import KubeSettings, configuration


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def written(folder: Path, name: str, server: str) -> Path:
    """A kubeconfig of two contexts."""
    body = kubeconfig(server)
    body["clusters"].append({"name": "other", "cluster": {"server": "https://other:6443"}})
    body["contexts"].append({"name": "other", "context": {"cluster": "other", "user": "tester"}})
    file = folder / name
    file.write_text(json.dumps(body))
    return file


def test_the_setting_comes_before_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the variable before the pod that this may run in."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("KUBECONFIG", str(written(tmp_path, "variable", "https://variable:6443")))
    set_one = written(tmp_path, "setting", "https://setting:6443")
    assert configuration(KubeSettings(kubeconfig=set_one)).host == "https://setting:6443"
    assert configuration(KubeSettings()).host == "https://variable:6443"


def test_another_context_can_be_chosen(tmp_path: Path) -> None:
    """The current one counts where none is."""
    file = written(tmp_path, "config", "https://current:6443")
    assert configuration(KubeSettings(kubeconfig=file)).host == "https://current:6443"
    chosen = KubeSettings(kubeconfig=file, context="other")
    assert configuration(chosen).host == "https://other:6443"


def test_a_pod_without_a_token_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one sentence that says where it was looked for."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(KubeError, match=r"^the pod's service account: "):
        configuration(KubeSettings())


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", "- a\n- b", "a: b", "contexts: [1]", '{"current-context": "x"}', "\x00"],
)
def test_what_is_no_kubeconfig_is_told(tmp_path: Path, content: str) -> None:
    """In one sentence that names the file."""
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(KubeError) as caught:
        configuration(KubeSettings(kubeconfig=file))
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_told() -> None:
    """The same."""
    with pytest.raises(KubeError, match=r"^/nowhere/config: "):
        configuration(KubeSettings(kubeconfig=Path("/nowhere/config")))


def test_a_server_without_a_scheme_is_told(tmp_path: Path) -> None:
    """A slip of the pen that a client would take for a path."""
    file = written(tmp_path, "config", "api.example:6443")
    with pytest.raises(KubeError, match=r"server 'api\.example:6443' begins with neither https://"):
        configuration(KubeSettings(kubeconfig=file))
