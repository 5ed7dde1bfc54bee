"""`surefoot inspect topology`: what an `nvidia-smi topo -m` text says, as JSON or for people."""

from __future__ import annotations

import codecs
from typing import Any

from scoring.links import Links, links_of
from scoring.rings import islands, positions
from scoring.topo_text import TopoText, parse
from scoring.topology import missing_links


def report(data: bytes) -> dict[str, Any] | None:
    """The answer of `inspect topology --json`; None when the text has nothing usable.

    `links` holds every pair that could be read, lower index first; `nvlink_islands` the islands of
    two and more.
    """
    topo = parse(_decoded(data))
    if topo is None:
        return None
    names = [gpu.name for gpu in topo.gpus]
    links = links_of([gpu.index for gpu in topo.gpus], topo.pairs)
    return {
        "gpus": [
            {
                "name": gpu.name,
                "numa": None if gpu.numa is None else list(gpu.numa),
                "cpus": gpu.cpus,
            }
            for gpu in topo.gpus
        ],
        "links": {f"GPU{low}-GPU{high}": word for (low, high), word in topo.pairs.items()},
        "nvlink_islands": [
            [names[position] for position in positions(island)]
            for island in islands(links)
            if island.bit_count() > 1
        ],
        "complete": topo.complete,
        "problems": [*topo.problems, *_weak(topo, links)],
    }


def render(answer: dict[str, Any]) -> str:
    """The same for people: GPUs, islands, then what is wrong."""
    lines = [f"{len(answer['gpus'])} GPUs, {'complete' if answer['complete'] else 'INCOMPLETE'}"]
    for gpu in answer["gpus"]:
        numa = "unknown" if gpu["numa"] is None else ",".join(map(str, gpu["numa"]))
        lines.append(f"  {gpu['name']:<6} NUMA {numa:<8} CPUs {gpu['cpus'] or 'unknown'}")
    grouped: dict[str, list[str]] = {}
    for pair, word in answer["links"].items():
        grouped.setdefault(word, []).append(pair)
    for word, pairs in grouped.items():
        count = "1 pair" if len(pairs) == 1 else f"{len(pairs)} pairs"
        lines.append(f"{word:<5} {count}: {' '.join(pairs)}")
    lines += [f"NVLink island: {' '.join(island)}" for island in answer["nvlink_islands"]]
    lines += [f"problem: {problem}" for problem in answer["problems"]]
    return "\n".join(lines)


def _decoded(data: bytes) -> str:
    """The text of `data`. PowerShell's `>` writes UTF-16 with a mark; all else counts as UTF-8."""
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if utf16 else "utf-8-sig", errors="replace")


def _weak(topo: TopoText, links: Links) -> list[str]:
    """GPUs with fewer NVLinks than their peers; said only where every pair was read."""
    if not topo.complete:
        return []
    return [
        f"{topo.gpus[position].name}: {cause.evidence}"
        for position, causes in missing_links(links).items()
        for cause in causes
    ]
