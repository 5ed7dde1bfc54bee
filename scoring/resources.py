"""Names of extended resources that stand for GPUs, and what one unit of each is."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from scoring.model import ResourceKind

GPU_RESOURCES: Final[tuple[tuple[re.Pattern[str], ResourceKind], ...]] = (
    (re.compile(r"nvidia\.com/gpu|amd\.com/gpu|gpu\.intel\.com/(i915|xe)"), ResourceKind.WHOLE),
    (re.compile(r"nvidia\.com/mig-[0-9a-z.+-]+(?<!\.shared)"), ResourceKind.MIG),
    (re.compile(r"nvidia\.com/(gpu|mig-[0-9a-z.+-]+)\.shared"), ResourceKind.SHARED),
)
"""Resources whose units are GPUs or parts of one, as the device plugins of NVIDIA, AMD and Intel
name them, best known first: of a pod that asks for several, the first is judged. Memory and core
shares (`nvidia.com/gpumem`) and Intel's `_monitoring` are no GPUs."""


@lru_cache(maxsize=1024)
def kind_of(resource: str) -> ResourceKind:
    """What one unit of `resource` is; NONE where it is no GPU."""
    for pattern, kind in GPU_RESOURCES:
        if pattern.fullmatch(resource):
            return kind
    return ResourceKind.NONE


def order_of(resource: str) -> int:
    """Where a GPU resource stands in the order in which one of several is chosen."""
    for place, (pattern, _) in enumerate(GPU_RESOURCES):
        if pattern.fullmatch(resource):
            return place
    return len(GPU_RESOURCES)
