"""What failed pods teach: rejections, and exclusions until a node reports anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pools import fleet_of, of_state, seen
from strategies import NOW_S

from scoring import learning
from scoring.model import Fleet, GangKey, NodeName, Rejection
from scoring.policy import DEFAULT

N0 = NodeName("n0")
UNIX_S = 1_790_000_000.0
"""The fleet's now, as clocks outside tell it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A pod that a node refused just now."""

    node: NodeName = N0
    owner: str = "lab/ranks"
    reason: str = "UnexpectedAdmissionError"
    name: str = "rank-3"
    at_s: float = UNIX_S


def fleet(*known: Rejection) -> Fleet:
    """A node at its 8th document in its 2nd epoch."""
    node = replace(of_state("n0"), epoch=2, seq=8)
    return replace(fleet_of(node), rejections={N0: known} if known else {})


def learnt(failure: Failure, found: Fleet | None = None) -> Rejection | None:
    """What it teaches."""
    return learning.learnt(failure, found or fleet(), UNIX_S, DEFAULT)


class TestLearnt:
    """Failures as rejections."""

    def test_a_failure_is_kept_with_the_document_of_its_node(self) -> None:
        """Which one it was says later what is newer evidence."""
        assert learnt(Failure()) == Rejection(
            node=N0, owner="lab/ranks", reason="UnexpectedAdmissionError", at_s=UNIX_S,
            name="rank-3", epoch=2, seq=8,
        )  # fmt: skip

    def test_a_node_without_a_document_is_kept_without(self) -> None:
        """Nothing is newer than nothing: it only weighs against the node for a while."""
        found = learnt(Failure(node=NodeName("other")))
        assert found is not None
        assert (found.epoch, found.seq) == (None, None)

    def test_what_is_known_is_not_learnt_again(self) -> None:
        """A new leader lists the failed pods again; the first word on them stands."""
        known = Rejection(
            node=N0,
            owner="lab/ranks",
            reason="OutOf",
            at_s=NOW_S - 60.0,
            name="rank-3",
            epoch=1,
            seq=1,
        )
        assert learnt(Failure(at_s=UNIX_S - 60.4), fleet(known)) is None
        assert learnt(Failure(), fleet(known)) is not None
        assert learnt(Failure(at_s=UNIX_S - 60.0, name="rank-4"), fleet(known)) is not None
        assert learnt(Failure(at_s=UNIX_S - 60.0, owner="lab/x"), fleet(known)) is not None

    def test_what_is_too_old_to_count_is_left(self) -> None:
        """Failed pods stay for days."""
        keep_s = DEFAULT.rejection.keep_s
        assert learnt(Failure(at_s=UNIX_S - keep_s)) is None
        assert learnt(Failure(at_s=UNIX_S - keep_s + 1.0)) is not None


class TestExclusions:
    """Rejections of gangs' pods as the planner wants them."""

    def test_a_gang_does_not_go_back(self) -> None:
        """The node that failed it is excluded, with the document that stood then."""
        found = fleet(_of("lab/ranks"), _of("lab/Job/other"))
        (each,) = learning.exclusions(found, [GangKey("lab/ranks"), GangKey("lab/third")])
        assert (each.node, each.owner, each.epoch, each.seq) == (N0, "lab/ranks", 2, 8)

    def test_one_name_of_two_conventions_is_both(self) -> None:
        """Pods say the key without the convention that tells the gangs apart."""
        keys = [GangKey("lab/ranks"), GangKey("lab/ranks~kueue"), GangKey("lab/ranks~4f2a")]
        found = learning.exclusions(fleet(_of("lab/ranks")), keys)
        assert {each.owner for each in found} == {"lab/ranks", "lab/ranks~kueue"}

    def test_what_does_not_say_when_excludes_nothing(self) -> None:
        """A rejection that a person put says nothing of the document."""
        put = replace(_of("lab/ranks"), epoch=None, seq=None)
        assert not learning.exclusions(fleet(put), [GangKey("lab/ranks")])
        assert not learning.exclusions(fleet(), [GangKey("lab/ranks")])

    def test_what_was_learnt_excludes_until_the_node_reports_anew(self) -> None:
        """The rejection of a failure, on the fleet's line, is an exclusion that still stands."""
        found = learnt(Failure())
        assert found is not None
        now = seen(fleet(replace(found, at_s=NOW_S))).fleet
        (each,) = learning.exclusions(now, [GangKey("lab/ranks")])
        node = now.nodes[N0]
        assert (node.epoch, node.seq) <= (each.epoch, each.seq)

    def test_what_the_fleet_does_not_show_yet_excludes_too(self) -> None:
        """A replacement may be planned before the cache has told of the failure."""
        fresh = _of("lab/ranks")
        (each,) = learning.exclusions(fleet(), [GangKey("lab/ranks")], [fresh])
        assert (each.node, each.owner, each.epoch, each.seq) == (N0, "lab/ranks", 2, 8)


class TestUntold:
    """What was learnt, until the fleet shows it."""

    def test_it_is_kept_until_the_fleet_shows_it(self) -> None:
        """Whatever time the fleet's line gives it."""
        fresh = _of("lab/ranks")
        assert learning.untold([fresh], fleet(_of("lab/other"))) == (fresh,)
        assert learning.untold([fresh], fleet(replace(fresh, at_s=UNIX_S))) == ()

    def test_it_is_kept_no_longer_than_it_excludes(self) -> None:
        """Its node has reported anew, or nobody could tell when it does."""
        fresh = _of("lab/ranks")
        assert learning.untold([replace(fresh, seq=7)], fleet()) == ()
        assert learning.untold([replace(fresh, epoch=None, seq=None)], fleet()) == ()
        assert learning.untold([replace(fresh, node=NodeName("other"))], fleet()) == ()


def _of(owner: str) -> Rejection:
    return Rejection(node=N0, owner=owner, reason="OutOf", at_s=NOW_S, name="a", epoch=2, seq=8)
