"""`inspect metrics`: one dcgm-exporter page, judged GPU by GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.inspect.dcgm import SIGNAL_OF
from extender.inspect.dcgm import page as read_page
from extender.inspect.metrics import render, report
from extender.inspect.prom_text import rows
from scoring.signals.catalogue import Signal

HEALTHY: Mapping[str, str] = {
    "DCGM_FI_DEV_GPU_TEMP": "41",
    "DCGM_FI_DEV_POWER_USAGE": "120.5",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "0",
    "DCGM_FI_DEV_ROW_REMAP_PENDING": "0",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "0",
    "DCGM_FI_DEV_SM_CLOCK": "1500",
}


def uuid(index: int) -> str:
    """The uuid of a GPU of the page."""
    return f"GPU-{index:08d}-aaaa-bbbb-cccc-dddddddddddd"


def labels(index: int, **more: str) -> dict[str, str]:
    """The labels of a series as the exporter writes them."""
    return {
        "gpu": str(index),
        "UUID": uuid(index),
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": "host-a",
        "DCGM_FI_DRIVER_VERSION": "570.86.15",
        **more,
    }


def series(name: str, value: str, of: Mapping[str, str]) -> str:
    """One line of the page."""
    block = ",".join(f'{key}="{text}"' for key, text in of.items())
    return f"{name}{{{block}}} {value}\n"


def page(
    *extra: str, gpus: int = 4, change: Mapping[tuple[str, int], str | None] | None = None
) -> str:
    """A page of healthy GPUs; `change` gives one GPU another value of a metric, None: no line."""
    lines = []
    for name, value in HEALTHY.items():
        lines.append(f"# TYPE {name} gauge\n")
        for index in range(gpus):
            told = (change or {}).get((name, index), value)
            if told is not None:
                lines.append(series(name, told, labels(index)))
    return "".join([*extra, *lines])


def devices(text: str) -> dict[int, dict[str, object]]:
    """The report of a page, by the number of the GPU."""
    found = report(text.encode())
    assert found is not None
    return {device["index"]: device for device in found["devices"].values()}


def states(text: str) -> list[object]:
    """The states of the GPUs of a page, in order."""
    found = devices(text)
    return [found[index]["state"] for index in sorted(found)]


def test_a_healthy_page() -> None:
    """Every GPU with its index, model and nothing against it."""
    found = devices(page())
    assert found[2] == {
        "index": 2,
        "model": "NVIDIA H100 80GB HBM3",
        "state": "HEALTHY",
        "causes": [],
        "recorded": [],
        "evidence": {},
        "missing": [],
    }
    assert states(page()) == ["HEALTHY"] * 4


@pytest.mark.parametrize(
    "text", ["", "\n", '{"error": "no host engine"}\n', "go_threads 7\n", "<html>"]
)
def test_what_is_no_page_of_gpus_yields_nothing(text: str) -> None:
    """An empty page, an error answer, another program's page."""
    assert report(text.encode()) is None


@pytest.mark.parametrize(
    ("metric", "value", "state"),
    [
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "1e+00", "RESET_REQUIRED"),
        ("DCGM_FI_DEV_ROW_REMAP_PENDING", "1", "DEGRADED"),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "1", "FAILED"),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "9223372036854775794", "UNKNOWN"),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "140737488355330", "UNKNOWN"),
        ("DCGM_FI_DEV_ROW_REMAP_PENDING", "NaN", "UNKNOWN"),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "-0", "HEALTHY"),
    ],
)
def test_one_gpu_differs(metric: str, value: str, state: str) -> None:
    """Flags and blanks count for their GPU alone."""
    assert states(page(change={(metric, 1): value})) == ["HEALTHY", state, "HEALTHY", "HEALTHY"]


@pytest.mark.parametrize(
    ("name", "value", "state"),
    [
        ("DCGM_FI_DEV_ROW_REMAP_FAILED", "1", "FAILED"),
        ("DCGM_FI_DEV_MEMORY_UNREPAIRABLE", "1", "FAILED"),
        ("DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", "1", "FAILED"),
        ("DCGM_FI_DEV_SRAM_EXCEEDED", "1", "FAILED"),
        ("DCGM_FI_DEV_GPU_RECOVERY_ACTION", "2", "REBOOT_REQUIRED"),
        ("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "1", "RESET_REQUIRED"),
        ("DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", "2", "DEGRADED"),
        ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", "4", "DEGRADED"),
        ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", "6", "HEALTHY"),
        ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", "2", "HEALTHY"),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "64", "HEALTHY"),
        ("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "9999", "HEALTHY"),
        ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "7", "HEALTHY"),
        ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "123456", "HEALTHY"),
        ("dcgm_row_remap_failure", "1", "FAILED"),
    ],
)
def test_old_and_new_names_mean_the_same(name: str, value: str, state: str) -> None:
    """Flags open from one page; levels, lifetime counters and history do not."""
    found = states(page(series(name, value, labels(3))))
    assert found == ["HEALTHY", "HEALTHY", "HEALTHY", state]


def test_labels_come_in_many_forms() -> None:
    """Uuid and gpu_uuid, model_name, spaces, other order, a comma at the end, escapes."""
    other = (
        f'DCGM_FI_DEV_GPU_TEMP {{ note = "a \\"b\\" }}, c" , uuid = "{uuid(7)}", gpu="7" , }}  40\n'
        f'DCGM_FI_DEV_ROW_REMAP_PENDING{{gpu_uuid="{uuid(7)}",model_name="Some GPU"}} 1 1795946096000\n'
    )
    found = devices(other)
    assert (found[7]["state"], found[7]["model"]) == ("DEGRADED", "Some GPU")


def test_repeats_for_pods_and_instances_are_one_gpu_at_its_worst() -> None:
    """A GPU shared by pods, or split by MIG, has many series and one health."""
    shared = [
        series("DCGM_FI_DEV_ROW_REMAP_PENDING", value, labels(9, pod=f"p{value}"))
        + series("DCGM_FI_DEV_GPU_TEMP", "40", labels(9, GPU_I_ID=value))
        for value in ("1", "0")
    ]
    found = devices(page(*shared))
    assert len(found) == 5
    assert found[9]["state"] == "DEGRADED"


def test_a_line_that_is_no_series_spoils_no_other() -> None:
    """Words for numbers, labels without an end, comments and blank lines are passed over."""
    text = 'a{b="c"} much\nd{e="f} 1\n\n# a 1\ng 2 extra\nh{i="j"} +Inf\nk 1_000\nl 3 # {m="n"} 1\n'
    assert [row.name for row in rows(text)] == ["h", "l"]


def test_rows_of_switches_and_cpus_are_no_gpus() -> None:
    """They have labels of their own."""
    other = (
        'DCGM_FI_DEV_NVSWITCH_FATAL_ERRORS{nvswitch="nvswitch0",UUID="NVSWITCH-1"} 1\n'
        'DCGM_FI_DEV_CPU_TEMP_CURRENT{cpu="0"} 90\n'
    )
    assert len(devices(page(other))) == 4


@pytest.mark.parametrize(
    ("xids", "action", "state", "causes", "recorded"),
    [
        ({"79": "1"}, None, "REBOOT_REQUIRED", ["xid.79"], []),
        ({"79": "0"}, None, "HEALTHY", [], []),
        ({"31": "5", "45": "40"}, None, "HEALTHY", [], ["xid.31", "xid.45"]),
        ({"43": "1", "95": "1"}, None, "RESET_REQUIRED", ["xid.95"], ["xid.43"]),
        ({"48": "1"}, "0", "SUSPECT", ["xid.48"], []),
        ({"119": "1"}, "0", "RESET_REQUIRED", ["xid.119"], []),
        ({"31": "1"}, "2", "REBOOT_REQUIRED", ["recovery.action"], ["xid.31"]),
        ({"bad": "1"}, None, "HEALTHY", [], []),
    ],
)
def test_xids_of_the_window_are_events(
    xids: dict[str, str], action: str | None, state: str, causes: list[str], recorded: list[str]
) -> None:
    """Application codes are recorded; the recovery action speaks about codes linked to it."""
    extra = [
        series("DCGM_EXP_XID_ERRORS_COUNT", n, labels(0, xid=code, window_size_in_ms="300000"))
        for code, n in xids.items()
    ]
    if action is not None:
        extra.append(series("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", action, labels(0)))
    found = devices(page(*extra))[0]
    assert (found["state"], found["causes"], found["recorded"]) == (state, causes, recorded)


def test_the_gauge_of_the_last_xid_is_no_more_than_a_suspicion() -> None:
    """It never falls and has no date; where the page counts XIDs it says nothing."""
    gauge = series("DCGM_FI_DEV_XID_ERRORS", "79", labels(0, err_code="79"))
    harmless = series("DCGM_FI_DEV_XID_ERROR", "31", labels(1))
    counted = series("DCGM_EXP_XID_ERRORS_COUNT", "0", labels(1, xid="48"))
    assert states(page(gauge, harmless)) == ["SUSPECT", "HEALTHY", "HEALTHY", "HEALTHY"]
    assert states(page(gauge, counted)) == ["HEALTHY"] * 4


@pytest.mark.parametrize(
    ("watch", "value", "state"),
    [
        ("MEM", "20", "DEGRADED"),
        ("MEM", "10", "SUSPECT"),
        ("NVLINK", "20", "DEGRADED"),
        ("THERMAL", "20", "HEALTHY"),
        ("POWER", "10", "HEALTHY"),
        ("ALL", "0", "HEALTHY"),
    ],
)
def test_the_health_watch_counts_by_its_subject(watch: str, value: str, state: str) -> None:
    """Heat and power are levels, which one page cannot settle."""
    row = series("DCGM_EXP_GPU_HEALTH_STATUS", value, labels(0, health_watch=watch))
    assert states(page(row))[0] == state


def test_a_gpu_that_says_less_than_its_neighbours_is_unknown() -> None:
    """What the others of its model show is missing, by name."""
    gaps = {(name, 3): None for name in HEALTHY if not name.endswith("GPU_TEMP")}
    found = devices(page(change=gaps))[3]
    assert found["state"] == "UNKNOWN"
    assert found["missing"] == ["ecc_dbe", "power_w", "remap_failed", "remap_pending"]


def test_metrics_that_the_whole_model_lacks_are_not_missed() -> None:
    """A short list of metrics, or a model without row remapping, is no gap."""
    text = "".join(
        series("DCGM_FI_DEV_GPU_TEMP", "30", labels(i, modelName="Tesla T4")) for i in (0, 1)
    )
    assert states(text) == ["HEALTHY", "HEALTHY"]


def test_only_signs_of_a_gpu_without_a_value_make_it_unknown() -> None:
    """A name and a gauge of no error are no telemetry."""
    found = devices(series("DCGM_FI_DEV_XID_ERRORS", "0", labels(0)))[0]
    assert found["state"] == "UNKNOWN"


def test_a_cut_page_counts_for_what_arrived() -> None:
    """Wherever it ends, a half line is no line, and no GPU is blamed for the cut family."""
    text = page(change={("DCGM_FI_DEV_ROW_REMAP_FAILURE", 0): "1"})
    last = text.rindex("DCGM_FI_DEV_SM_CLOCK")
    for end in range(text.index("# TYPE DCGM_FI_DEV_SM_CLOCK"), len(text), 7):
        assert states(text[:end]) == ["FAILED", "HEALTHY", "HEALTHY", "HEALTHY"]
    assert "1500" not in "".join(str(row.value) for row in rows(text[last:-3]))


def test_a_series_much_older_than_the_page_is_not_of_now() -> None:
    """A time stamp of an hour ago is no measurement."""
    now, old = 1_795_946_096_000, 1_795_942_496_000
    lines = "".join(
        series("DCGM_FI_DEV_GPU_TEMP", f"40 {now}", labels(i))
        + series("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", f"0 {old if i == 1 else now}", labels(i))
        for i in range(3)
    )
    tail = series("DCGM_FI_DEV_SM_CLOCK", f"1500 {now}", labels(0))
    assert states(lines + tail) == ["HEALTHY", "UNKNOWN", "HEALTHY"]


def test_clock_reasons_of_repeated_series_are_joined() -> None:
    """Bits of any instance are bits of the GPU."""
    text = "".join(
        series("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", bits, labels(0, GPU_I_ID=bits))
        for bits in ("4", "64")
    )
    (gpu,) = read_page(text).gpus
    assert gpu.values == {Signal.CLOCK_EVENTS: 68.0}
    assert gpu.mig


def test_links_are_summed_and_metrics_of_one_signal_too() -> None:
    """Retired pages of both kinds make one count; so do links of one GPU."""
    old = labels(0, modelName="Tesla V100-SXM2-32GB")
    text = (
        series("DCGM_FI_DEV_GPU_TEMP", "40", old)
        + series("DCGM_FI_DEV_RETIRED_SBE", "40", old)
        + series("DCGM_FI_DEV_RETIRED_DBE", "23", old)
    )
    assert devices(text)[0]["causes"] == ["pages.exhausted"]


def test_the_report_for_people_names_evidence_and_gaps() -> None:
    """A line for the GPU, one for each cause, one for what is missing."""
    found = report(
        page(
            change={
                ("DCGM_FI_DEV_ROW_REMAP_PENDING", 1): "1",
                ("DCGM_FI_DEV_POWER_USAGE", 1): None,
            }
        ).encode()
    )
    assert found is not None
    lines = render(found).splitlines()
    assert lines[0].startswith("GPU 0  HEALTHY  NVIDIA H100 80GB HBM3  GPU-")
    assert "  remap.pending  remap_pending 1" in lines
    assert "  missing  power_w" in lines


def test_no_two_signals_claim_one_metric() -> None:
    """The table of names is a function."""
    assert len(SIGNAL_OF) == len(set(SIGNAL_OF))
    assert all(name.startswith(("DCGM_FI_DEV_", "dcgm_")) for name in SIGNAL_OF)


@given(st.binary(max_size=400))
def test_law_any_bytes_are_read(data: bytes) -> None:
    """Never an exception, and always JSON."""
    json.dumps(report(data))


@given(st.data())
def test_law_a_damaged_page_is_read(data: st.DataObject) -> None:
    """Cut, spliced and overwritten pages give a report or none."""
    text = page(gpus=2).encode()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    found = report(text[:start] + data.draw(st.binary(max_size=20)) + text[end:])
    assert found is None or isinstance(render(found), str)
