"""Documents as agents would put them into the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extender.store import documents
from extender.store.documents import Document


def node_body(
    name: str, *, gpus: int = 8, sick: Mapping[int, str] | None = None, **fields: Any
) -> dict[str, Any]:
    """A Node whose GPUs are behind NVSwitch; `sick`: a state by index of the GPU."""
    causes = {
        index: [{"id": "xid.48", "state": state, "evidence": "double-bit error"}]
        for index, state in (sick or {}).items()
    }
    return {
        "apiVersion": "surefoot.dev/v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "H100"}},
        "allocationMode": "unknown",
        "links": {f"GPU{i}-GPU{j}": "NV18" for i in range(gpus) for j in range(i + 1, gpus)},
        "gpus": [
            {
                "uuid": f"GPU-{name}-{index}",
                "index": index,
                "model": "H100",
                "causes": causes.get(index, []),
            }
            for index in range(gpus)
        ],
        **fields,
    }


def node_paper(name: str, **options: Any) -> Document:
    """The same, checked."""
    return documents.check(node_body(name, **options))


def paper(kind: str, **fields: Any) -> Document:
    """A document of another kind, checked."""
    return documents.check({"apiVersion": "surefoot.dev/v1", "kind": kind, **fields})
