"""A provisioner of volumes that has no room on some nodes, as local disks have none at times."""

from __future__ import annotations

from typing import Final

from asking import Json

from e2e.api import Api
from e2e.waiting import eventually

SELECTED: Final = "volume.kubernetes.io/selected-node"
CLASSES: Final = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES: Final = "/api/v1/persistentvolumes"
SIZE: Final = {"storage": "1Gi"}
ONCE: Final = ["ReadWriteOnce"]


class Storage:
    """A class of volumes that are made where their first pod is to run; one test's own."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.full: set[str] = set()
        """Nodes without room."""
        self._api = api
        self._name = namespace
        self._claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        self._made: list[str] = []
        api.create(
            CLASSES,
            {
                "metadata": {"name": self._name},
                "provisioner": "surefoot.dev/e2e",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        )

    def claim(self, name: str) -> Json:
        """Claim a volume; what the pod's `volumes` say of it."""
        spec = {
            "storageClassName": self._name,
            "accessModes": ONCE,
            "resources": {"requests": SIZE},
        }
        self._api.create(self._claims, {"metadata": {"name": name}, "spec": spec})
        return {"name": name, "persistentVolumeClaim": {"claimName": name}}

    def provide(self, name: str) -> None:
        """Make the volume once kube-scheduler has chosen a node with room. At each other choice say
        that there is none, as provisioners do: by taking the choice away.
        """
        eventually(lambda: self._provided(name), f"a node with room is chosen for {name}")

    def remove(self) -> None:
        """Delete what is in no namespace."""
        for name in self._made:
            self._api.delete(f"{VOLUMES}/{name}")
        self._api.delete(f"{CLASSES}/{self._name}")

    def _provided(self, name: str) -> bool:
        path = f"{self._claims}/{name}"
        claim = self._api.get(path)["metadata"]
        node = claim.get("annotations", {}).get(SELECTED)
        if node in self.full:
            self._api.merge(path, {"metadata": {"annotations": {SELECTED: None}}})
        elif node is not None:
            self._make(claim)
            return True
        return False

    def _make(self, claim: Json) -> None:
        name = f"volume-of-{claim['uid']}"
        self._made.append(name)
        spec = {
            "storageClassName": self._name,
            "accessModes": ONCE,
            "capacity": SIZE,
            "hostPath": {"path": "/scratch"},
            "claimRef": {
                "namespace": claim["namespace"],
                "name": claim["name"],
                "uid": claim["uid"],
            },
        }
        self._api.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})
