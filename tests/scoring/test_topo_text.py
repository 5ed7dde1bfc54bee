"""`nvidia-smi topo -m` in every dress: what is said is read, what is not said is not invented."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

import pytest
import topo_printer as printer
from hypothesis import given
from hypothesis import strategies as st
from topo_printer import (
    LEGEND_M,
    LEGEND_MP,
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


@given(
    made=matrices(),
    dress=st.sampled_from([tabs, blanks]),
    nics=st.sampled_from([(), ("NIC0", "NIC1"), ("mlx5_2", "mlx5_0"), ("ib0", "rocep7s0")]),
    nics_first=st.booleans(),
)
def test_what_is_printed_is_read(
    made: Made, dress: Layout, nics: tuple[str, ...], nics_first: bool
) -> None:
    """Every whole matrix comes back as it was, with tabs or blanks, network cards before or behind."""
    count, matrix = made
    topo = read(dress(table(count, matrix, nics=nics, nics_first=nics_first)))
    assert dict(topo.pairs) == matrix
    assert topo.complete
    assert topo.problems == ()
    assert [gpu.name for gpu in topo.gpus] == [f"GPU{i}" for i in range(count)]
    assert [gpu.numa for gpu in topo.gpus] == [(i // 2,) for i in range(count)]
    assert [gpu.cpus for gpu in topo.gpus] == [f"{8 * i}-{8 * i + 7}" for i in range(count)]


@given(made=matrices(), order=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(made: Made, order: Random) -> None:
    """Rows are read by their names."""
    count, matrix = made
    header, *rows = table(count, matrix)
    order.shuffle(rows)
    assert dict(read(tabs([header, *rows])).pairs) == matrix


DRESSES: Final[dict[str, Callable[[str], str]]] = {
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "shell comments": lambda text: "".join(f"# {line}\n" for line in text.splitlines()),
    "a quoted block": lambda text: "".join(f">     {line}\n" for line in text.splitlines()),
    "a prompt and a fence": lambda text: f"```\n$ nvidia-smi topo -m\n{text}```\n",
    "an underlined header": lambda text: (
        "\x1b[4m" + text.replace("GPU NUMA ID", "GPU NUMA ID\x1b[0m", 1)
    ),
    "colours without escapes": lambda text: (
        "[4m" + text.replace("GPU NUMA ID", "GPU NUMA ID[0m", 1)
    ),
    "colours spelt out": lambda text: "^[[4m" + text.replace("GPU NUMA ID", "GPU NUMA ID^[[0m", 1),
    "blanks of a web page": lambda text: text.replace("  ", "\u00a0 "),
    "a host before each line": lambda text: "".join(
        f"gpu-17: {line}\n" for line in text.splitlines()
    ),
    "a time before each line": lambda text: "".join(
        f"2031-02-03T04:05:06.789Z stdout F {line}\n" for line in text.splitlines()
    ),
    "empty comments between": lambda text: text.replace("\n", "\n#\n"),
    "other text around": lambda text: f"see GPU2 below\n\n{text}\nthanks, GPU 3 is fine\n",
}


@pytest.mark.parametrize("dress", DRESSES.values(), ids=DRESSES.keys())
@pytest.mark.parametrize("layout", [tabs, blanks])
def test_dress_does_not_matter(layout: Layout, dress: Callable[[str], str]) -> None:
    """What tickets, terminals and chats wrap around the text changes nothing."""
    plain = layout(table(4, MESH, nics=["NIC0"]))
    assert read(dress(plain)) == read(plain)
    assert dict(read(plain).pairs) == MESH


def test_doubled_tabs_are_no_empty_cells() -> None:
    """Tabs that were doubled on the way shift nothing."""
    text = tabs(table(4, MESH, affinity=printer.AFFINITY[:2])).replace("\t", "\t\t")
    topo = read(text)
    assert dict(topo.pairs) == MESH
    assert topo.gpus[2].numa == (1,)
    assert topo.gpus[2].cpus == "16-23"


def test_a_markdown_table_is_read() -> None:
    """Bars between the cells count as tabs."""
    rows = table(4, MESH, affinity=printer.AFFINITY[:2])
    text = "\n".join("| " + " | ".join(row) + " |" for row in rows) + LEGEND_M
    assert dict(read(text).pairs) == MESH


def test_soc_is_sys() -> None:
    """Drivers before 384 say SOC for SYS."""
    text = tabs(table(3, pairs(3, lambda _i, _j: "SOC"), affinity=["CPU Affinity"]))
    assert set(read(text).pairs.values()) == {"SYS"}
    assert read(text).gpus[0].numa is None


def test_no_affinity_columns_are_unknown() -> None:
    """Without the columns CPUs and NUMA nodes are None, not empty."""
    topo = read(blanks(table(3, pairs(3, lambda _i, _j: "NV4"), affinity=[])))
    assert {(gpu.cpus, gpu.numa) for gpu in topo.gpus} == {(None, None)}
    assert topo.complete


@pytest.mark.parametrize(
    ("cell", "numa"),
    [
        ("1", (1,)),
        ("0-3", (0, 1, 2, 3)),
        ("0,8,252-255", (0, 8, 252, 253, 254, 255)),
        ("N/A", None),
        ("3-1", None),
        ("0-99999", None),
    ],
)
@pytest.mark.parametrize("layout", [tabs, blanks])
def test_numa_nodes_are_lists(layout: Layout, cell: str, numa: tuple[int, ...] | None) -> None:
    """A NUMA cell is an id, a range, a list, or not known."""
    topo = read(layout(table(2, {(0, 1): "NV4"}, near=lambda _: ("0-31", cell))))
    assert [gpu.numa for gpu in topo.gpus] == [numa, numa]
    assert [gpu.cpus for gpu in topo.gpus] == ["0-31", "0-31"]


@pytest.mark.parametrize("layout", [tabs, blanks])
def test_an_empty_cpu_cell_stays_empty(layout: Layout) -> None:
    """In a container without the host's CPUs the NUMA id does not move into their column."""
    rows = table(
        3,
        pairs(3, lambda _i, _j: "NV4"),
        near=lambda gpu: ("", "1") if gpu else ("0-15", "0"),
    )
    topo = read(layout(rows))
    assert [(gpu.cpus, gpu.numa) for gpu in topo.gpus] == [
        ("0-15", (0,)),
        (None, (1,)),
        (None, (1,)),
    ]
    assert topo.complete


def test_a_numa_id_glued_to_the_cpus_is_parted() -> None:
    """`48-71,144-1671` is `144-167` and `1` where that makes the ranges equally long."""
    rows = table(
        2,
        {(0, 1): "NV4"},
        near=lambda gpu: ("48-71,144-1671", "") if gpu else ("0-23,96-119", "0"),
    )
    topo = read(blanks(rows))
    assert (topo.gpus[1].cpus, topo.gpus[1].numa) == ("48-71,144-167", (1,))


def test_glued_names_in_the_header_are_parted() -> None:
    """`GPU2GPU3`, `NIC0NIC1` and `NIC1CPU Affinity` lose no column."""
    text = blanks(table(4, MESH, nics=["NIC0", "NIC1"]))
    for name in ("GPU3", "NIC1", "CPU"):
        head, _, rest = text.partition("\n")
        glued = head.replace(f"    {name}", name, 1).replace(f"  {name}", name, 1)
        topo = read(f"{glued}\n{rest}")
        assert dict(topo.pairs) == MESH
        assert topo.gpus[3].cpus == "24-31"


def test_glued_cells_are_parted() -> None:
    """`NV2NV6` are two cells, `PXBPXB` too, and `PXB0-7` ends in the CPU list."""
    text = blanks(table(4, MESH, nics=["NIC0", "NIC1"]))
    for spaced, glued in (
        ("NV2     NV6", "NV2NV6"),
        ("PXB     PXB", "PXBPXB"),
        ("PXB     0-7", "PXB0-7"),
    ):
        assert spaced in text
        topo = read(text.replace(spaced, glued, 1))
        assert dict(topo.pairs) == MESH
        assert topo.gpus[0].cpus == "0-7"
        assert topo.complete


def test_a_count_glued_to_the_cpus_is_not_guessed() -> None:
    """`NV120-7` may be NV12 and 0-7 or NV120: the other direction decides, the CPUs stay unknown."""
    text = blanks(table(2, {(0, 1): "NV12"}, affinity=["CPU Affinity"]))
    topo = read(text.replace("NV12    0-7", "NV120-7"))
    assert topo.pairs == {(0, 1): "NV12"}
    assert not topo.complete


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_wrapped_header_is_joined(at: int) -> None:
    """A header that a terminal broke, even between the affinity columns, is one header."""
    head, _, rest = blanks(table(4, MESH)).partition("\n")
    name = ("", "GPU1", "GPU3", "NUMA Affinity")[at]
    before, _, after = head.partition(name)
    topo = read(f"{before}\n{name}{after}\n{rest}")
    assert dict(topo.pairs) == MESH
    assert topo.complete
    assert topo.gpus[3].numa == (1,)


def test_wrapped_rows_are_joined() -> None:
    """Rows that a narrow terminal broke between cells are whole again."""
    head, *rows = blanks(table(8, pairs(8, lambda _i, _j: "NV18")), legend="").splitlines()
    broken = [part for row in rows for part in (row[:40], row[40:])]
    topo = read("\n".join([head, *broken]) + LEGEND_M)
    assert len(topo.pairs) == 28
    assert topo.complete
    assert topo.gpus[7].cpus == "56-63"


def test_no_nvlink_needs_the_legend_of_topo_m() -> None:
    """`topo -mp` hides NVLink: without NV cells only a legend with NV# makes the text complete."""
    rows = table(4, pairs(4, lambda i, j: "PIX" if i // 2 == j // 2 else "SYS"))
    assert read(tabs(rows, LEGEND_M)).complete
    for legend in (LEGEND_MP, ""):
        topo = read(tabs(rows, legend))
        assert not topo.complete
        assert topo.problems


def test_one_gpu_alone_is_usable() -> None:
    """A machine with one GPU has no links, and that is an answer."""
    topo = read(tabs(table(1, {}, nics=["NIC0"])))
    assert topo.pairs == {}
    assert topo.gpus[0].cpus == "0-7"
    assert topo.complete


def test_the_fullest_of_several_matrices_is_read() -> None:
    """With `topo -mp`, `topo -m` and a peer-to-peer table in one text, the one with NVLink counts."""
    hidden = tabs(table(4, pairs(4, lambda _i, _j: "SYS")), LEGEND_MP)
    peers = tabs(table(4, pairs(4, lambda _i, _j: "OK"), affinity=[]), "")
    topo = read(hidden + peers + tabs(table(4, MESH)))
    assert dict(topo.pairs) == MESH
    assert topo.complete
    assert topo.problems == ("the text holds 2 matrices: only the fullest is read",)


def test_a_repeated_row_is_told() -> None:
    """Of two rows of one GPU the first is read, and that is said."""
    rows = table(3, pairs(3, lambda _i, _j: "NV4"))
    topo = read(tabs([*rows, rows[1]]))
    assert topo.problems == ("more than one row for GPU0: the first is read",)
