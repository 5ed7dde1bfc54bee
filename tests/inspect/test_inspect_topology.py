"""`surefoot inspect topology`: the shape of its answer."""

from __future__ import annotations

import json

import topo_printer as printer

from extender.inspect.topology import render, report

BRIDGED = printer.tabs(
    printer.table(4, printer.pairs(4, lambda i, j: "NV4" if j == i + 2 else "SYS"))
)


def _answer(text: str) -> dict[str, object]:
    answer = report(text.encode())
    assert answer is not None
    return answer


def test_the_answer_names_gpus_links_and_islands() -> None:
    """GPUs with their NUMA nodes and CPUs, every pair lower index first, islands of two and more."""
    answer = _answer(BRIDGED)
    assert json.loads(json.dumps(answer)) == {
        "gpus": [
            {"name": "GPU0", "numa": [0], "cpus": "0-7"},
            {"name": "GPU1", "numa": [0], "cpus": "8-15"},
            {"name": "GPU2", "numa": [1], "cpus": "16-23"},
            {"name": "GPU3", "numa": [1], "cpus": "24-31"},
        ],
        "links": {
            "GPU0-GPU1": "SYS",
            "GPU0-GPU2": "NV4",
            "GPU0-GPU3": "SYS",
            "GPU1-GPU2": "SYS",
            "GPU1-GPU3": "NV4",
            "GPU2-GPU3": "SYS",
        },
        "nvlink_islands": [["GPU0", "GPU2"], ["GPU1", "GPU3"]],
        "complete": True,
        "problems": [],
    }


def test_names_are_ordered_by_number() -> None:
    """The pair is GPU2-GPU10, never GPU10-GPU2."""
    answer = _answer(printer.blanks(printer.table(12, printer.pairs(12, lambda _i, _j: "NV6"))))
    assert "GPU2-GPU10" in answer["links"]  # type: ignore[operator]
    assert answer["nvlink_islands"] == [[f"GPU{i}" for i in range(12)]]


def test_a_gpu_off_nvlink_is_a_problem() -> None:
    """A whole matrix in which one GPU lacks what its peers have says so."""
    word = lambda i, j: "NODE" if 2 in (i, j) else "NV18"  # noqa: E731
    answer = _answer(printer.tabs(printer.table(8, printer.pairs(8, word))))
    assert answer["complete"] is True
    assert answer["problems"] == ["GPU2: no NVLinks to GPUs of the node, peers have 108"]


def test_a_cut_matrix_accuses_no_gpu() -> None:
    """Links that were not printed are not missing links."""
    rows = printer.table(4, printer.pairs(4, lambda _i, _j: "NV4"))
    answer = _answer(printer.tabs(rows[:2], ""))
    assert answer["complete"] is False
    assert not any("peers" in problem for problem in answer["problems"])  # type: ignore[attr-defined]


def test_windows_text_is_read() -> None:
    """UTF-16 as PowerShell redirects it, and UTF-8 with a mark."""
    assert report(BRIDGED.encode("utf-16")) == _answer(BRIDGED)
    assert report(BRIDGED.encode("utf-8-sig")) == _answer(BRIDGED)


def test_nothing_usable_is_none() -> None:
    """Empty, binary and foreign texts have no answer."""
    assert report(b"") is None
    assert report(bytes(range(256)) * 16) is None
    assert report(b"\xff\xfeG\x00P") is None
    assert report(b"NVIDIA-SMI has failed\n") is None


def test_people_see_gpus_islands_and_problems() -> None:
    """The text form names each GPU, each island and each problem once."""
    rows = printer.table(4, printer.pairs(4, lambda i, j: "NV4" if i // 2 == j // 2 else "SYS"))
    answer = _answer(printer.tabs(rows[1:], ""))
    text = render(answer)
    assert text.startswith("4 GPUs, INCOMPLETE\n")
    assert "NVLink island: GPU0 GPU1\n" in text
    assert "SYS   4 pairs: GPU0-GPU2 GPU0-GPU3 GPU1-GPU2 GPU1-GPU3\n" in text
    assert "problem: the header is missing: only GPUs that have a row are read" in text
    assert not text.endswith("\n")


def test_one_pair_is_no_pairs() -> None:
    """People count like people."""
    answer = _answer(printer.tabs(printer.table(2, {(0, 1): "NV18"})))
    assert "NV18  1 pair: GPU0-GPU1" in render(answer).splitlines()
