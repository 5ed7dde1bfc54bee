"""Damaged and foreign texts: nothing is invented, nothing is called complete, nothing hangs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topo_printer import (
    MESH,
    Layout,
    Made,
    blanks,
    matrices,
    pairs,
    read,
    table,
    tabs,
)

from scoring.topo_text import parse


def test_a_lost_header_is_replaced_by_the_diagonal() -> None:
    """Each X tells which column is its row's GPU; cards are not taken for GPUs."""
    rows = table(4, MESH, nics=["NIC0", "NIC1"])
    topo = read(tabs(rows[1:]))
    assert dict(topo.pairs) == MESH
    assert not topo.complete
    assert any("header" in problem for problem in topo.problems)


def test_a_header_that_lost_a_name_is_replaced_by_the_diagonal() -> None:
    """A header with one name less would shift every column behind it."""
    head, *rows = table(6, pairs(6, lambda i, j: f"NV{i + j}"))
    topo = read(tabs([[cell for cell in head if cell != "GPU1"], *rows]))
    assert dict(topo.pairs) == pairs(6, lambda i, j: f"NV{i + j}")
    assert not topo.complete


def test_a_shifted_row_is_not_read() -> None:
    """A row that lost a cell is left out, the other direction stands in."""
    rows = table(6, pairs(6, lambda i, j: f"NV{i + j}"))
    del rows[4][2]
    topo = read(blanks(rows))
    assert dict(topo.pairs) == pairs(6, lambda i, j: f"NV{i + j}")
    assert not topo.complete


def test_a_missing_row_is_missing() -> None:
    """The other rows still tell its links; the GPU is named, its CPUs are not known."""
    rows = table(4, MESH)
    del rows[2]
    topo = read(tabs(rows))
    assert dict(topo.pairs) == MESH
    assert not topo.complete
    assert (topo.gpus[1].cpus, topo.gpus[1].numa) == (None, None)
    assert topo.problems == ("no row for GPU1",)


def test_a_missing_column_is_missing() -> None:
    """A column that is gone from header and rows is told; its GPU's own row still has the links."""
    rows = [[cell for at, cell in enumerate(row) if at != 2] for row in table(4, MESH)]
    topo = read(tabs(rows))
    assert dict(topo.pairs) == MESH
    assert topo.problems == ("no column for GPU1",)


def test_columns_cut_on_the_right_are_missing() -> None:
    """`cut -c` leaves half a name at the end of the header, which is no device."""
    text = "\n".join(
        line[:35] for line in blanks(table(8, pairs(8, lambda _i, _j: "NV6"))).splitlines()
    )
    topo = read(text)
    assert not topo.complete
    assert (6, 7) not in topo.pairs
    assert topo.pairs[0, 7] == "NV6"


def test_a_count_that_may_be_cut_is_not_read() -> None:
    """`NV1` at the end of the text is NV18 cut short where the text has NV18."""
    text = tabs(table(4, pairs(4, lambda _i, _j: "NV18")), legend="")
    cut = text[: text.index("GPU0\t X") + len("GPU0\t X \tNV18\tNV1")]
    topo = read(cut)
    assert topo.pairs == {(0, 1): "NV18"}
    assert not topo.complete
    cut = text[: text.index("\nGPU1") + len("\nGPU1\tNV18\t X \tNV18\tNV1")]
    assert (1, 3) not in read(cut).pairs


def test_a_last_row_without_its_affinities_is_cut() -> None:
    """All links are there, yet the text ends early."""
    text = tabs(table(2, {(0, 1): "NV4"}), legend="")
    topo = read(text[: text.rindex("\t\tN/A")])
    assert not topo.complete
    assert read(text).complete


def test_directions_that_differ_keep_the_slower() -> None:
    """Asymmetric cells are a fault to tell; the careful answer is the slower one."""
    rows = table(3, pairs(3, lambda _i, _j: "NV12"))
    rows[1][2], rows[3][1] = "NV11", "SYS"
    topo = read(tabs(rows))
    assert topo.pairs == {(0, 1): "NV11", (0, 2): "SYS", (1, 2): "NV12"}
    assert len(topo.problems) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t\n",
        "No devices were found\n",
        "bash: nvidia-smi: command not found\n",
        tabs(table(4, pairs(4, lambda _i, _j: "OK"), affinity=[])),
        tabs(table(2, {(0, 1): "CNS"}, affinity=[])),
        tabs(table(1, {}, affinity=[])),
        blanks(table(3, pairs(3, lambda _i, _j: "XGMI"), affinity=[])).replace(" X ", " 0 "),
        blanks(table(3, pairs(3, lambda _i, _j: "40"), affinity=[])).replace(" X ", " 0 "),
        "GPU0 X marks the spot where GPU1 fell off\n",
        "\x00\x01\x02" * 500,
    ],
)
def test_other_texts_are_none(text: str) -> None:
    """Peer-to-peer tables, AMD's tables, errors and junk hold no link class to use."""
    assert parse(text) is None


@pytest.mark.untraced  # traced, it takes five times as long
@pytest.mark.parametrize(
    "line",
    [
        "GPU0\t X \tNV4\n",
        "\tGPU0\tGPU1\tGPU2\n",
        "GPU0 " * 3_000 + "\n",
        "X " * 50 + "\n",
        "CPU Affinity\n",
        "NV1" * 5_000 + "\n",
        "GPU1 " + "NV18 " * 3_000 + "\n",
        "0-1," * 4_000 + "\n",
        "SYS" * 5_000 + "9-\n",
        "\x1b[" * 5_000 + "\n",
        "." * 64 + ": \n",
    ],
)
def test_ten_megabytes_of_junk_take_seconds_at_most(line: str) -> None:
    """Work is linear in the length of the text, whatever it is."""
    text = line * (10_000_000 // len(line))
    start = time.process_time()
    parse(text)
    assert time.process_time() - start < 20


@given(made=matrices(), dress=st.sampled_from([tabs, blanks]), cut=st.floats(0, 1))
def test_a_cut_text_never_says_what_the_whole_one_does_not(
    made: Made, dress: Layout, cut: float
) -> None:
    """Cut anywhere, the text yields a part of the matrix; only a count cut to a known shorter count
    of the text may go unseen, and never as complete.
    """
    count, matrix = made
    whole = dress(table(count, matrix), legend="")
    topo = parse(whole[: int(cut * len(whole))])
    if topo is None:
        return
    for pair, word in topo.pairs.items():
        assert word == matrix[pair] or (matrix[pair].startswith(word) and not topo.complete)
    assert set(topo.pairs) == set(matrix) or not topo.complete


@given(st.text(alphabet="GPUNICXSYVHB0189 \t\n=#-,/A[m\x1b", max_size=400))
def test_junk_never_raises(text: str) -> None:
    """Whatever the text, the answer is a value or None."""
    topo = parse(text)
    assert topo is None or topo.gpus
