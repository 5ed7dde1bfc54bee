"""What is worked out once for a set of names."""

from __future__ import annotations

import pytest

from extender.webhook.memo import Memo
from scoring.model import NodeName

ABC = [NodeName(name) for name in ("a", "b", "c")]


def test_equal_sets_share_one_value() -> None:
    """Whatever the order in which they were made, and whichever object they are."""
    calls: list[frozenset[NodeName]] = []

    def size(names: frozenset[NodeName]) -> int:
        calls.append(names)
        return len(names)

    memo: Memo[int] = Memo(4)
    assert [memo.get(size, frozenset(each)) for each in (ABC, reversed(ABC), ABC[:1])] == [3, 3, 1]
    assert len(calls) == 2


def test_the_order_of_several_sets_matters() -> None:
    """A difference is not symmetric."""
    memo: Memo[int] = Memo(4)
    big, small = frozenset(ABC), frozenset(ABC[:1])

    def lacking(names: frozenset[NodeName], known: frozenset[NodeName]) -> int:
        return len(names - known)

    assert [memo.get(lacking, big, small), memo.get(lacking, small, big)] == [2, 0]


@pytest.mark.parametrize("most", [1, 3])
def test_it_keeps_so_many_at_most(most: int) -> None:
    """Ever new offers must not fill the memory."""
    memo: Memo[int] = Memo(most)
    for number in range(10):
        assert memo.get(len, frozenset({NodeName(str(number))})) == 1
        assert len(memo._kept) <= most
