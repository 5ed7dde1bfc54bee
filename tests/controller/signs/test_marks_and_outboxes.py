"""What nodes carry, as a reflector shows it, and queues that never make anybody wait."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from cluster_objects import node, raw
from msgspec import Raw
from servers import eventually

from extender.controller.signs.marks import Marked, MarkedNodes, mark_of
from extender.controller.signs.outbox import Outbox
from extender.kube.errors import UnreachableError
from extender.kube.shapes import Header
from scoring.conditions import NodeCondition, Status
from scoring.model import Taint


class Behind:
    """Another handler of nodes, which keeps their names."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.lists = 0

    def read(self, header: Header, raw: Raw) -> str | None:
        """Its name; of a node called `none` nothing."""
        return header.name if header.name != "none" else None

    def listing(self) -> None:
        """Count."""
        self.lists += 1

    def listed(self, found: dict[str, str], *, whole: bool) -> None:
        """Keep."""
        self.names = found if whole else {**self.names, **found}

    def changed(self, key: str, now: str | None) -> None:
        """Keep."""
        if now is None:
            self.names.pop(key, None)
        else:
            self.names[key] = now


def marked(**more: Any) -> dict[str, Any]:
    """A node with taints and our condition among others."""
    body = node("n0")
    body["metadata"]["uid"] = "uid-n0"
    body["spec"]["taints"] = [
        {"key": "team", "value": "a", "effect": "NoExecute"},
        {"key": "surefoot.dev/unfit", "effect": "NoSchedule"},
    ]
    condition = {"type": "GpuHealthDegraded", "status": "True", "reason": "Xid48", "message": "m"}
    body["status"]["conditions"].append({**condition, **more})
    return body


class TestMarks:
    """Nodes on their way from the reflector to the signs."""

    def test_a_mark_has_what_a_write_needs(self) -> None:
        """Identity, version, our condition, and all taints in their order."""
        found = mark_of(*raw(marked()))
        assert (found.uid, found.version) == ("uid-n0", "1")
        assert found.condition == NodeCondition(status=Status.TRUE, reason="Xid48", message="m")
        assert found.taints == (
            Taint(key="team", value="a", effect="NoExecute"),
            Taint(key="surefoot.dev/unfit", effect="NoSchedule"),
        )

    @pytest.mark.parametrize("status", [None, "Maybe"])
    def test_a_condition_that_says_nothing_is_none(self, status: str | None) -> None:
        """It is written as if it were not there."""
        assert mark_of(*raw(marked(status=status))).condition is None

    def test_nodes_come_change_and_go(self) -> None:
        """For the marks and for whoever is behind."""
        behind = Behind()
        nodes = MarkedNodes(behind)
        nodes.listing()
        bodies = [node("a"), node("b"), node("none")]
        read = {body["metadata"]["name"]: nodes.read(*raw(body)) for body in bodies}
        nodes.listed({key: each for key, each in read.items() if each is not None}, whole=True)
        before = nodes.marks()
        assert sorted(before) == ["a", "b", "none"]
        assert sorted(behind.names) == ["a", "b"]
        nodes.changed("b", None)
        nodes.changed("c", nodes.read(*raw(node("c"))))
        assert sorted(nodes.marks()) == ["a", "c", "none"]
        assert sorted(before) == ["a", "b", "none"]
        assert (sorted(behind.names), behind.lists) == (["a", "c"], 1)
        nodes.listed({"d": Marked("d", None)}, whole=False)
        assert sorted(nodes.marks()) == ["a", "c", "none"]
        nodes.listed({}, whole=True)
        assert not nodes.marks()

    def test_a_node_that_cannot_be_read_stays_with_whoever_is_behind(self) -> None:
        """One of the two may read it."""
        odd = {**node("n0"), "spec": {"taints": "many"}}
        assert MarkedNodes(Behind()).read(*raw(odd)) == Marked("n0", None)
        assert MarkedNodes(Behind()).read(*raw({**odd, "metadata": {"name": "none"}})) is None


class TestOutbox:
    """A queue with a thread."""

    def test_whoever_puts_never_waits(self) -> None:
        """However long one sending takes; what is being sent is pending."""
        going, sent = threading.Event(), list[int]()

        def send(item: int) -> None:
            going.wait(30)
            sent.append(item)

        box = Outbox("slow", send)
        box.start()
        for item in range(3):
            box.put(item)
        assert box.pending == 3
        going.set()
        eventually(lambda: box.pending == 0, "all are sent")
        box.close()
        assert sent == [0, 1, 2]
        assert not box.alive

    def test_what_no_server_took_is_given_back_once(self) -> None:
        """A surprise is not: it would be one again."""
        errors: dict[str, Exception] = {"away": UnreachableError("no route"), "odd": KeyError("x")}

        def send(item: str) -> None:
            if item in errors:
                raise errors[item]

        box = Outbox("failing", send, most=3)
        for item in ("pushed out", "away", "odd", "fine"):
            box.put(item)
        box.start()
        eventually(lambda: box.sent == 1, "the last is sent")
        box.close()
        assert (box.failed, box.dropped) == (2, 1)
        assert box.take_lost() == ["pushed out", "away"]
        assert box.take_lost() == []
