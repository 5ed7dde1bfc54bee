"""`inspect metrics` on numbers that no counter has: NaN, infinities, 1e308, and longer."""

from __future__ import annotations

import json

import pytest

from extender.inspect.metrics import report

VITAL = ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ROW_REMAP_PENDING", "DCGM_FI_DEV_GPU_TEMP")
"""Without any of these a GPU is not known to be well."""
ANY = (
    *VITAL,
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_GPU_RECOVERY_ACTION",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    "DCGM_FI_DEV_FABRIC_MANAGER_STATUS",
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
)
ODD = ("NaN", "nan", "1e308", "-1e308", "+Inf", "-Inf", "1e999", "-1", "9" * 5000, "0x1p3")


def page(change: str, value: str) -> bytes:
    """Two GPUs that show every metric; the second one shows `value` for `change`."""
    lines = (
        f'{name}{{gpu="{gpu}",UUID="GPU-{gpu}",modelName="NVIDIA H100 80GB HBM3"}} '
        + (value if (gpu, name) == (1, change) else "40" if name.endswith("TEMP") else "0")
        for name in ANY
        for gpu in (0, 1)
    )
    return "\n".join([*lines, ""]).encode()


@pytest.mark.parametrize("metric", ANY)
@pytest.mark.parametrize("value", ODD)
def test_an_impossible_number_is_no_measurement(metric: str, value: str) -> None:
    """It never counts as a fault of another kind, never as health, and never spoils the neighbour."""
    found = report(page(metric, value))
    assert found is not None
    json.dumps(found, allow_nan=False)
    sound, odd = found["devices"]["GPU-0"], found["devices"]["GPU-1"]
    assert (sound["state"], sound["causes"], sound["missing"]) == ("HEALTHY", [], [])
    assert odd["state"] in ("HEALTHY", "UNKNOWN")
    if metric in VITAL:
        assert (odd["state"], len(odd["missing"])) == ("UNKNOWN", 1)
