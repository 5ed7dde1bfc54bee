"""Where the API server is, and who we are to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from extender.kube.errors import KubeError

IN_CLUSTER: Final = "KUBERNETES_SERVICE_HOST"
"""The variable that every pod has."""
KUBECONFIG: Final = "KUBECONFIG"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeSettings:
    """How to reach the API server.

    Tried in this order: `kubeconfig`, the variable KUBECONFIG, the service account of the pod that
    this runs in, `~/.kube/config`.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    """Of the kubeconfig; None: its current one."""


def configuration(settings: KubeSettings) -> Configuration:
    """The client's own settings.

    Raises:
        KubeError: there is no usable one.
    """
    made = Configuration()
    made.keep_alive = True  # a peer that is gone is noticed within minutes, whatever happens
    file = settings.kubeconfig or os.environ.get(KUBECONFIG)
    in_cluster = not file and IN_CLUSTER in os.environ
    source = "the pod's service account" if in_cluster else str(file or "~/.kube/config")
    try:
        if in_cluster:
            load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=made
            )
        else:
            load_kube_config(  # type: ignore[no-untyped-call]
                config_file=str(file) if file else None,
                context=settings.context,
                client_configuration=made,
                persist_config=False,
            )
    except ConfigException as error:
        raise KubeError(f"{source}: {_told(error)}") from error
    except OSError as error:
        raise KubeError(f"{source}: {error.strerror or error}") from error
    except (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError) as error:
        # What the loader lets out of a file that is something else than a kubeconfig.
        raise KubeError(f"{source}: is no kubeconfig: {_told(error)}") from error
    if not made.host.startswith(("https://", "http://")):
        raise KubeError(f"{source}: server {made.host!r} begins with neither https:// nor http://")
    return made


def _told(error: Exception) -> str:
    return " ".join(str(error).split())
