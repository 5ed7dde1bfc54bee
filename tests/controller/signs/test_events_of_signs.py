"""Events at the API server: said once, counted after that, and one a minute for each gang."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kubes import refuses
from servers import eventually
from signing import HOME, Json, Stage, stage

from extender.controller.signs import outbox
from extender.controller.signs.events import LONGEST_NOTE, Events, EventType, Target
from scoring.model import GangKey

__all__ = ["stage"]

POD = Target(kind="Pod", namespace="lab", name="rank-0", uid="uid-rank-0")
JOB = Target(api_version="batch/v1", kind="Job", namespace="lab", name="ranks", uid="uid-ranks")
NODE = Target(kind="Node", name="gpu-0", uid="uid-gpu-0")
GANG = GangKey("lab/ranks")


@pytest.fixture
def events(stage: Stage) -> Iterator[Events]:
    """Events of a leader."""
    found = Events(stage.kube, stage.clock, stage.clock)
    found.act(acting=True)
    found.outbox.start()
    yield found
    found.outbox.close()


def sent(stage: Stage, events: Events, count: int) -> list[Json]:
    """The events at the server once so many requests went out."""
    eventually(lambda: events.outbox.sent + events.outbox.failed >= count, f"{count} are sent")
    return stage.events()


class TestShape:
    """What `kubectl describe` reads."""

    def test_an_event_is_about_its_object(self, stage: Stage, events: Events) -> None:
        """With reason, note, type, component, and the times that it happened."""
        events.about(JOB, "GangPlanned", "4 of 4 members have nodes", gang=GANG)
        (found,) = sent(stage, events, 1)
        assert found["involvedObject"] == {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": "lab",
            "name": "ranks",
            "uid": "uid-ranks",
        }
        assert (found["reason"], found["type"]) == ("GangPlanned", "Normal")
        assert found["message"] == "4 of 4 members have nodes"
        assert found["source"] == {"component": "surefoot"}
        assert found["firstTimestamp"] == found["lastTimestamp"] == "2026-09-21T14:13:20Z"
        assert (found["count"], found["metadata"]["namespace"]) == (1, "lab")
        assert found["metadata"]["name"].startswith("ranks.")

    def test_an_event_on_a_node_is_in_the_default_namespace(
        self, stage: Stage, events: Events
    ) -> None:
        """Where those of the kubelet are."""
        events.about(NODE, "Xid48", "GPU 5", EventType.WARNING)
        (found,) = sent(stage, events, 1)
        assert found["metadata"]["namespace"] == "default"
        assert "namespace" not in found["involvedObject"]

    @pytest.mark.parametrize("text", ["x" * 5_000, "ü" * 2_000, "\ud800" + "€" * 800])
    def test_a_note_is_bounded(self, stage: Stage, events: Events, text: str) -> None:
        """In bytes, and never cut within a character."""
        events.about(POD, "R" * 500, text)
        (found,) = sent(stage, events, 1)
        assert len(found["message"].encode()) <= LONGEST_NOTE
        assert found["message"].endswith("…")
        assert len(found["reason"]) == 128

    def test_a_long_name_makes_a_valid_one(self, stage: Stage, events: Events) -> None:
        """The event's own name is no longer than names may be."""
        long = "a" * 199 + "-" + "b" * 53
        events.about(Target(kind="Pod", namespace="lab", name=long), "Any", "thing")
        (found,) = sent(stage, events, 1)
        name = found["metadata"]["name"]
        assert len(name) <= 253
        assert "-." not in name


class TestRepetition:
    """The same again."""

    def test_the_same_again_is_only_counted(self, stage: Stage, events: Events) -> None:
        """Within a minute nothing is sent; afterwards the count of the event is patched."""
        for _ in range(5):
            events.about(POD, "NominationRestored", "on gpu-0")
        stage.clock.pass_s(61)
        events.about(POD, "NominationRestored", "on gpu-0")
        (found,) = sent(stage, events, 2)
        assert (found["count"], found["lastTimestamp"]) == (6, "2026-09-21T14:14:21Z")
        assert found["firstTimestamp"] == "2026-09-21T14:13:20Z"
        assert events.repeated == 4

    @pytest.mark.parametrize(
        ("target", "reason", "note"),
        [(JOB, "A", "a"), (POD, "B", "a"), (POD, "A", "b")],
        ids=["object", "reason", "note"],
    )
    def test_anything_else_is_another_event(
        self, stage: Stage, events: Events, target: Target, reason: str, note: str
    ) -> None:
        """The same is the same object, reason and note."""
        events.about(POD, "A", "a")
        events.about(target, reason, note)
        assert len(sent(stage, events, 2)) == 2

    def test_an_event_that_the_server_forgot_is_made_again(
        self, stage: Stage, events: Events
    ) -> None:
        """Events live for an hour; the count goes on."""
        events.about(POD, "A", "a")
        (found,) = sent(stage, events, 1)
        stage.api.delete("events", f"lab/{found['metadata']['name']}")
        stage.clock.pass_s(4_000)
        events.about(POD, "A", "a")
        (found,) = sent(stage, events, 2)
        assert found["count"] == 2


class TestGangs:
    """One event a minute for each."""

    def test_a_gang_has_one_event_a_minute_and_its_last_word_is_told(
        self, stage: Stage, events: Events
    ) -> None:
        """What comes sooner waits, and gives way to what comes later."""
        events.about(JOB, "GangShort", "3 of 4", EventType.WARNING, gang=GANG)
        events.about(POD, "NominationRestored", "on gpu-0", gang=GANG)
        events.about(JOB, "GangPlanned", "4 of 4", gang=GANG)
        events.about(JOB, "GangPlanned", "2 of 2", gang=GangKey("lab/other"))
        for _ in range(70):
            assert len(stage.events()) <= 2 or stage.clock.now_s >= 1_790_000_060.0
            stage.clock.pass_s(1)
            events.tick()
        found = sent(stage, events, 3)
        assert [each["message"] for each in found] == ["3 of 4", "2 of 2", "4 of 4"]
        assert events.replaced == 1

    def test_what_is_as_it_was_is_not_told_again(self, stage: Stage, events: Events) -> None:
        """A gang that was short, planned and is short again within a minute: one event."""
        events.about(JOB, "GangShort", "3 of 4", gang=GANG)
        events.about(JOB, "GangPlanned", "4 of 4", gang=GANG)
        events.about(JOB, "GangShort", "3 of 4", gang=GANG)
        stage.clock.pass_s(90)
        events.tick()
        assert [each["message"] for each in sent(stage, events, 1)] == ["3 of 4"]


class TestPatience:
    """What may be over soon."""

    def test_it_is_told_when_it_lasts(self, stage: Stage, events: Events) -> None:
        """Its last word, and counted from the first: pods that trickle in put nothing off."""
        events.about(JOB, "GangMembersMissing", "1 of 4 pods exists", gang=GANG, after_s=10.0)
        stage.clock.pass_s(6.0)
        events.about(JOB, "GangMembersMissing", "2 of 4 pods exist", gang=GANG, after_s=10.0)
        events.tick()
        stage.clock.pass_s(5.0)
        events.tick()
        assert [each["message"] for each in sent(stage, events, 1)] == ["2 of 4 pods exist"]

    def test_a_later_word_does_not_wait_for_it(self, stage: Stage, events: Events) -> None:
        """It is told at once, and what it took the place of is not."""
        events.about(JOB, "GangMembersMissing", "1 of 4 pods exists", gang=GANG, after_s=10.0)
        events.about(JOB, "GangNoRoom", "needs 4 nodes", gang=GANG)
        (found,) = sent(stage, events, 1)
        assert found["reason"] == "GangNoRoom"
        stage.clock.pass_s(61.0)
        events.tick()
        events.about(JOB, "GangPlanned", "4 of 4", gang=GANG)
        assert [each["reason"] for each in sent(stage, events, 2)] == ["GangNoRoom", "GangPlanned"]


class TestTrouble:
    """Events never hurt anybody."""

    def test_who_does_not_lead_tells_nothing(self, stage: Stage, events: Events) -> None:
        """Nor later what it was told meanwhile."""
        events.about(JOB, "A", "a", gang=GANG)
        sent(stage, events, 1)
        events.about(JOB, "A", "b", gang=GANG)
        events.act(acting=False)
        events.about(POD, "A", "c")
        events.act(acting=True)
        stage.clock.pass_s(90)
        events.tick()
        assert [each["message"] for each in sent(stage, events, 1)] == ["a"]

    def test_a_refusal_is_counted_and_the_next_one_told(self, stage: Stage, events: Events) -> None:
        """A namespace that is being deleted takes no events."""
        stage.api.faults["write"].append(refuses(403, "namespace is being terminated"))
        events.about(POD, "A", "a")
        events.about(NODE, "A", "a")
        found = sent(stage, events, 2)
        assert [each["involvedObject"]["name"] for each in found] == ["gpu-0"]
        assert events.outbox.failed == 1

    def test_a_lost_lease_sends_nothing(self, stage: Stage, events: Events) -> None:
        """The writer's fence does not hold: counted, and nothing reaches the server."""
        stage.fence.end()
        events.about(HOME, "PoolFrozen", "many nodes")
        eventually(lambda: events.outbox.failed == 1, "the event failed")
        assert not stage.api.writes

    def test_a_full_queue_drops_the_oldest(self, stage: Stage) -> None:
        """The server is away for long: the newest events are kept, the others counted."""
        events = Events(stage.kube, stage.clock, stage.clock)
        events.act(acting=True)
        for number in range(outbox.MOST + 3):
            events.about(POD, "A", f"{number}")
        assert events.outbox.pending == outbox.MOST
        assert events.outbox.dropped == 3
        events.outbox.start()
        eventually(stage.events, "the first that is left is sent")
        events.outbox.close()
        assert stage.events()[0]["message"] == "3"
