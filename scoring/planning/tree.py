"""The nodes as a tree of domains, zone over block over rack over clique over node.

A domain is told by its whole path, so the tree is one even where labels contradict each other: a
clique whose nodes claim different racks counts as two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from scoring.links import links_of
from scoring.model import Node
from scoring.planning.hosts import Host
from scoring.planning.spread import UNIT, WIDEST_FIRST, opening
from scoring.planning.values import Span, Spans
from scoring.rings import islands
from scoring.topology import Domain, Level, domains


@dataclass(slots=True, eq=False)
class Branch:
    """One domain, or one node: then `host` is its position."""

    serial: int
    """Those within it have lower ones."""
    domain: Domain | None
    """None: the root."""
    opening: int
    """What the first member in it costs: itself, and the domains that are it under another name."""
    children: tuple[Branch, ...] = ()
    host: int = -1
    parent: Branch | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """The tree of each domain in which a gang must stay whole; one tree where it may go anywhere."""

    roots: tuple[tuple[str, Branch], ...]
    """With the name of its domain for people: `rack r1`, `the cluster`."""
    branches: Sequence[Branch]
    """All of them, by serial."""
    leaves: Mapping[int, Branch]
    """The branch of each host; hosts outside every domain are absent."""


EVERYWHERE: Final = "the cluster"
Path: TypeAlias = tuple[Domain, ...]
"""The domains of a host, widest first, itself last."""


def path(host: Host) -> Path:
    """The domains that `host` lies in."""
    found = host.candidate
    if found is not None:
        return found.domains[::-1]
    bare = Node(name=host.name, gpus=(), links=links_of((), {}), labels=host.cluster.labels)
    return domains(bare)[::-1]


def named(domain: Domain) -> str:
    """A domain in words: `rack r1`. Where a label names it, its name ends with `label=value`."""
    return f"{domain.level} {domain.name.rpartition('=')[2]}"


def forest(hosts: Sequence[Host], paths: Sequence[Path], spans: Spans) -> Forest:
    """The trees in which a gang may be planned that must share a domain of each of `spans`."""
    sizes = Counter(within[: _CLIQUE + 1] for within in paths)
    alone = [sizes[within[: _CLIQUE + 1]] == 1 for within in paths]
    groups: dict[tuple[_Group, ...], list[int]] = {}
    for position, host in enumerate(hosts):
        group = tuple(_group(host, paths[position], span) for span in spans)
        if _OUTSIDE not in group:
            groups.setdefault(group, []).append(position)
    branches: list[Branch] = []
    roots = []
    for group in sorted(groups):
        children = _grown(groups[group], paths, alone, 0, branches)
        words = " and ".join(each.words for each in group) or EVERYWHERE
        roots.append((words, _joined(None, 0, children, branches)))
    leaves = {branch.host: branch for branch in branches if branch.host >= 0}
    return Forest(roots=tuple(roots), branches=branches, leaves=leaves)


class _Group(NamedTuple):
    """One domain of a span: unmistakably, and in words."""

    name: str
    words: str


_OUTSIDE: Final = _Group("", "")


def _group(host: Host, within: Path, span: Span) -> _Group:
    """The domain of `span` that a host is in, or `_OUTSIDE`."""
    if not isinstance(span, Level):
        value = host.cluster.labels.get(span)
        return _OUTSIDE if value is None else _Group(f"={value}", f"{span}={value}")
    if span is Level.ISLAND:
        found = host.candidate
        joined = found is not None and len(islands(found.node.links)) == 1
        return _Group(host.name, f"island of {host.name}") if joined else _OUTSIDE
    domain = next(domain for domain in within if domain.level is span)
    return _Group(domain.name, named(domain))


def _grown(
    members: Sequence[int],
    paths: Sequence[Path],
    alone: Sequence[bool],
    depth: int,
    branches: list[Branch],
) -> tuple[Branch, ...]:
    """The domains at one level of the tree over these hosts, grown before what they are part of. A
    host that is `alone` in its clique stands for the domains that hold nothing else.
    """
    groups: dict[Domain, list[int]] = {}
    for position in members:
        groups.setdefault(paths[position][depth], []).append(position)
    found = []
    for domain, group in groups.items():
        if len(group) == 1 and (alone[group[0]] or depth == _NODE):
            leaf = Branch(
                serial=len(branches),
                domain=paths[group[0]][-1],
                opening=_FROM_DEPTH[depth],
                host=group[0],
            )
            branches.append(leaf)
            found.append(leaf)
        else:
            within = _grown(group, paths, alone, depth + 1, branches)
            found.append(_joined(domain, UNIT[domain.level], within, branches))
    return tuple(found)


def _joined(
    domain: Domain | None, opening: int, children: tuple[Branch, ...], branches: list[Branch]
) -> Branch:
    branch = Branch(serial=len(branches), domain=domain, opening=opening, children=children)
    branches.append(branch)
    for child in children:
        child.parent = branch
    return branch


_CLIQUE, _NODE = WIDEST_FIRST.index(Level.CLIQUE), WIDEST_FIRST.index(Level.NODE)
_FROM_DEPTH: Final = tuple(opening(WIDEST_FIRST[depth:]) for depth in range(len(WIDEST_FIRST)))
"""What a node opens that shares no domain from this depth on."""
