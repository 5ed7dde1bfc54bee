"""deploy/scheduler-config: each file whole, each line with its why, each pair of one mind.

tests/e2e starts them.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
import shipped
from click.testing import CliRunner

from extender.config import load
from extender.config.model import FailurePolicy, Mode, SurefootConfig
from extender.rendering import files
from extender.rendering.__main__ import main
from extender.rendering.shapes import Name

NAMES = pytest.mark.parametrize("name", [*Name], ids=str)
ENFORCING = pytest.mark.parametrize("name", [each for each in Name if each is not Name.OBSERVE])
PLUMBING = {"apiVersion", "kind", "name"}
"""Keys that the format demands."""


def _surefoot(name: str) -> SurefootConfig:
    return load.load(shipped.CONFIGS / "surefoot" / f"{name}.yaml", {})


# --- the folder ----------------------------------------------------------------------------------


def test_the_shipped_files_are_what_render_config_writes() -> None:
    """`make docs` writes them; nobody edits them by hand."""
    assert files.stale() == []


def test_check_names_each_stale_file_and_writes_none(tmp_path: Path) -> None:
    """As `make check` asks."""
    where = ["--deploy", str(tmp_path)]
    missing = CliRunner().invoke(main, ["--check", *where])
    assert missing.exit_code == 1
    assert all(f"deploy/{name} is out of date" in missing.output for name in files.shipped())
    assert list(tmp_path.iterdir()) == []
    CliRunner().invoke(main, where, catch_exceptions=False)
    assert CliRunner().invoke(main, ["--check", *where]).exit_code == 0
    (tmp_path / "scheduler-config" / "tls.yaml").write_text("old", encoding="utf-8")
    stale = CliRunner().invoke(main, ["--check", *where])
    assert (stale.exit_code, stale.output.count("out of date")) == (1, 1)


def test_there_is_a_file_for_each_profile_and_no_other() -> None:
    """With the settings of Surefoot beside it."""
    wanted = sorted(f"{name}.yaml" for name in Name)
    for folder in (shipped.CONFIGS, shipped.CONFIGS / "surefoot"):
        assert sorted(file.name for file in folder.glob("*.yaml")) == wanted


# --- each file -----------------------------------------------------------------------------------


@NAMES
def test_each_line_says_why(name: Name) -> None:
    """Each setting has a comment above it, and the file one at its head."""
    for folder in (shipped.CONFIGS, shipped.CONFIGS / "surefoot"):
        lines = (folder / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("# ")
        for above, line in pairwise(lines):
            setting = re.match(r"[- ]*(\w+): .", line)
            if setting and setting[1] not in PLUMBING:
                assert above.lstrip().startswith("# "), line


@NAMES
def test_every_file_is_a_whole_configuration(name: Name) -> None:
    """Of the version that every supported Kubernetes reads, with the rates of a burst of gangs."""
    config = shipped.config(name)
    assert config["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert config["kind"] == "KubeSchedulerConfiguration"
    client = config["clientConnection"]
    assert (client["qps"], client["burst"]) == (2000, 4000)
    in_a_pod = name is Name.SECONDARY
    assert ("kubeconfig" in client) is not in_a_pod


@NAMES
def test_surefoot_is_asked_for_gpu_pods_and_binds_none(name: Name) -> None:
    """With every verb that it has, names instead of Nodes, and a weight above the plugins."""
    extender = shipped.extender(name)
    verbs = {verb: extender.get(f"{verb}Verb") for verb in ("filter", "prioritize", "preempt")}
    assert verbs == {verb: verb for verb in verbs}
    assert "bindVerb" not in extender
    assert extender["nodeCacheCapable"] is True
    assert extender["weight"] == 20
    assert extender["managedResources"] == [{"name": "nvidia.com/gpu", "ignoredByScheduler": False}]
    assert re.fullmatch(r"[12]s", extender["httpTimeout"])


@NAMES
def test_kube_scheduler_and_surefoot_fail_alike(name: Name) -> None:
    """`ignorable` speaks when nobody answers, `failurePolicy` without a snapshot: one mind."""
    is_open = _surefoot(name).webhook.failure_policy is FailurePolicy.OPEN
    assert shipped.extender(name)["ignorable"] is is_open
    assert is_open is (name is not Name.FAIL_CLOSED)


@ENFORCING
def test_every_profile_that_is_judged_offers_all_nodes(name: Name) -> None:
    """To filter and to preempt; a profile that is not judged keeps its sampling."""
    judged = _surefoot(name).webhook.scheduler_names
    for scheduler, profile in shipped.profiles(name).items():
        if judged and scheduler not in judged:
            assert profile == {"schedulerName": scheduler}
            continue
        assert profile["percentageOfNodesToScore"] == 100
        (plugin,) = profile["pluginConfig"]
        assert plugin["name"] == "DefaultPreemption"
        assert plugin["args"]["minCandidateNodesPercentage"] == 100


@ENFORCING
def test_surefoot_judges_only_schedulers_that_are_there(name: Name) -> None:
    """A name that nobody has would judge nothing, silently."""
    webhook = _surefoot(name).webhook
    assert webhook.mode is Mode.ENFORCE
    assert set(webhook.scheduler_names) <= set(shipped.profiles(name))


# --- what sets them apart ------------------------------------------------------------------------


def test_the_recommended_one_leaves_the_default_profile_alone() -> None:
    """Two profiles of one kube-scheduler, and only `surefoot` is judged."""
    assert list(shipped.profiles("extender")) == ["default-scheduler", "surefoot"]
    assert _surefoot("extender").webhook.scheduler_names == ("surefoot",)


def test_all_gpu_pods_means_all() -> None:
    """The profile that pods have which name none, and no name left out."""
    assert list(shipped.profiles("all-gpu-pods")) == ["default-scheduler"]
    assert _surefoot("all-gpu-pods").webhook.scheduler_names == ()


def test_the_second_scheduler_stays_out_of_the_firsts_way() -> None:
    """Neither its pods nor its lease; Surefoot is in the same pod."""
    assert list(shipped.profiles("secondary")) == ["surefoot"]
    election = shipped.config("secondary")["leaderElection"]
    assert (election["resourceName"], election["resourceNamespace"]) == (
        "surefoot-scheduler",
        "surefoot-system",
    )
    assert shipped.extender("secondary")["urlPrefix"].startswith("http://127.0.0.1:")


def test_observing_changes_nothing_of_the_scheduler() -> None:
    """Its profile is as if there were no file, and it never waits for long."""
    assert shipped.profiles("observe") == {
        "default-scheduler": {"schedulerName": "default-scheduler"}
    }
    webhook = _surefoot("observe").webhook
    assert (webhook.mode, webhook.scheduler_names) == (Mode.OBSERVE, ())


def test_open_and_closed_differ_in_nothing_else() -> None:
    """Both are the recommended one, by their names."""
    opened, closed, recommended = (
        shipped.config(name) for name in ("fail-open", "fail-closed", "extender")
    )
    assert opened == recommended
    closed["extenders"][0]["ignorable"] = True
    assert closed == opened


def test_https_is_verified_on_both_sides() -> None:
    """kube-scheduler verifies nothing without a CA, and says nothing of it."""
    extender = shipped.extender("tls")
    assert extender["urlPrefix"].startswith("https://")
    assert extender["enableHTTPS"] is True
    assert {"serverName", "caFile", "certFile", "keyFile"} == set(extender["tlsConfig"])
    assert extender["tlsConfig"]["serverName"] == "surefoot.surefoot-system.svc"
