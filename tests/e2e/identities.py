"""Who is who: a certificate authority of the cluster's own, and the kubeconfigs of its users."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trustme

MASTERS: Final = "system:masters"
NOBODY: Final = "nobody.invalid"
"""A host for certificates of users: Go refuses an empty list of hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its private key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Issues what servers show and what users show; all of it lies in `directory`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory = directory
        self._authority = trustme.CA()
        self.certificate = directory / "ca.crt"
        self._authority.cert_pem.write_to_path(str(self.certificate))
        self.serving = self._pair("serving", "localhost", "127.0.0.1")
        """For every server of the cluster: all of them are on this machine."""
        self.accounts = self._pair("accounts", NOBODY)
        """Its key signs the tokens of ServiceAccounts."""

    def user(self, name: str, group: str | None = None) -> Pair:
        """What makes a client this user for the API server."""
        return self._pair(name.replace(":", "-"), NOBODY, user=name, group=group)

    def _pair(
        self, file: str, *hosts: str, user: str | None = None, group: str | None = None
    ) -> Pair:
        made = self._authority.issue_cert(*hosts, common_name=user, organization_name=group)
        pair = Pair(
            certificate=self._directory / f"{file}.crt", key=self._directory / f"{file}.key"
        )
        made.cert_chain_pems[0].write_to_path(str(pair.certificate))
        made.private_key_pem.write_to_path(str(pair.key))
        return pair


def by_certificate(pair: Pair) -> Mapping[str, str]:
    """A user of a kubeconfig, with everything in it."""
    return {
        "client-certificate-data": _inline(pair.certificate),
        "client-key-data": _inline(pair.key),
    }


def by_token(token: str) -> Mapping[str, str]:
    """A user of a kubeconfig: a ServiceAccount."""
    return {"token": token}


def write_kubeconfig(file: Path, *, server: str, authority: Path, user: Mapping[str, str]) -> Path:
    """A kubeconfig with one cluster and one user; `file` is returned."""
    name = "e2e"
    cluster = {"server": server, "certificate-authority-data": _inline(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    file.write_text(json.dumps(content, indent=1))
    file.chmod(0o600)
    return file


def _inline(file: Path) -> str:
    return b64encode(file.read_bytes()).decode()
