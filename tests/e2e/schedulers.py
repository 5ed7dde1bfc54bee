"""Real kube-schedulers: their configuration, their log, their metrics."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Final

import urllib3
import yaml
from asking import Json
from prometheus_client.parser import text_string_to_metric_families

from e2e.cluster import Cluster
from e2e.processes import free_port

USER: Final = "system:kube-scheduler"
OPEN_PATHS: Final = "/healthz,/readyz,/metrics"
EXTENDER_ERROR: Final = re.compile(
    "ignorable flag set"
    "|Failed to run extender's priority function"
    "|Error scheduling pod"  # of one that is not ignorable: the cycle of a pod, or of a group
    "|Evaluation failed on nominated node"
    "|^E.*PostFilter plugins"  # of /preempt; the same at level I is what else came out
)
"""How kube-scheduler's log tells of them, 1.34 to 1.37."""


def profiles(*names: str) -> list[Json]:
    """Profiles in which every node is looked at, for filtering and for preemption."""
    preemption = {
        "name": "DefaultPreemption",
        "args": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "DefaultPreemptionArgs",
            "minCandidateNodesPercentage": 100,
        },
    }
    return [
        {"schedulerName": name, "percentageOfNodesToScore": 100, "pluginConfig": [preemption]}
        for name in names
    ]


def extender(url: str, **changes: object) -> Json:
    """Surefoot as an extender; `changes` in the words of the file, None takes a line away."""
    lines = {
        "urlPrefix": url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "weight": 20,
        "nodeCacheCapable": True,
        "managedResources": [{"name": "nvidia.com/gpu", "ignoredByScheduler": False}],
        "httpTimeout": "5s",
        "ignorable": False,
        **changes,
    }
    return {name: value for name, value in lines.items() if value is not None}


def configuration(*extenders: Json, names: tuple[str, ...] = ("default-scheduler",)) -> Json:
    """A KubeSchedulerConfiguration with these extenders."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": profiles(*names),
        "extenders": list(extenders),
    }


class Scheduler:
    """One kube-scheduler, with the rights that Kubernetes itself gives to it."""

    def __init__(self, cluster: Cluster, config: Json | Path, log: Path, verbosity: int) -> None:
        """A file is used as it is, apart from how the cluster is reached.

        `verbosity` 5 is the least with which it tells of errors in /prioritize.
        """
        self.port = free_port()
        given = yaml.safe_load(config.read_text()) if isinstance(config, Path) else deepcopy(config)
        client = {**given.get("clientConnection", {}), "kubeconfig": str(cluster.user(USER))}
        file = log.with_suffix(".yaml")
        file.write_text(
            yaml.safe_dump(
                {**given, "clientConnection": client, "leaderElection": {"leaderElect": False}}
            )
        )
        serving = cluster.plane.authority.serving
        self.process = cluster.plane.process(
            "kube-scheduler",
            [
                f"--config={file}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self.port}",
                f"--tls-cert-file={serving.certificate}",
                f"--tls-private-key-file={serving.key}",
                f"--authorization-always-allow-paths={OPEN_PATHS}",
                f"-v={verbosity}",
            ],
            log=log,
        )
        self._url = f"https://127.0.0.1:{self.port}"
        self._pool = urllib3.PoolManager(
            ca_certs=str(cluster.plane.authority.certificate), retries=False, timeout=10.0
        )

    def start(self) -> None:
        """Return once it schedules."""
        self.process.start().wait_until(self._ready)

    def kill(self) -> None:
        """End it at once."""
        self._pool.clear()
        self.process.kill()

    def value(self, sample: str, **labels: str) -> float:
        """The sum of a metric's samples that carry these labels."""
        page = self._pool.request("GET", f"{self._url}/metrics").data.decode()
        return sum(
            each.value
            for family in text_string_to_metric_families(page)
            for each in family.samples
            if each.name == sample and labels.items() <= each.labels.items()
        )

    def attempts(self, result: str) -> int:
        """How many scheduling attempts ended so: `scheduled`, `unschedulable` or `error`."""
        return int(self.value("scheduler_schedule_attempts_total", result=result))

    def extender_errors(self) -> list[str]:
        """What its log says of cycles that an error ended, and of extenders' errors that it ignored."""
        with self.process.log.open(errors="replace") as log:  # of many pods it is long
            return [line.rstrip() for line in log if EXTENDER_ERROR.search(line)]

    def _ready(self) -> bool:
        try:
            return self._pool.request("GET", f"{self._url}/readyz").status == 200
        except urllib3.exceptions.HTTPError:
            return False
