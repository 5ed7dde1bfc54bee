"""The laws of an election, whatever happens and in whatever order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from electing import KEY, Runner, World, runners
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kubes import ApiServer
from unsound import unanswered

from extender.kube.fence import Fence

TURNS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from([0.0, 0.5, 2.0, 6.0, 9.5, 13.7, 15.0, 17.0]),
        st.sampled_from(["step", "step", "step", "lost", "resign", "touched", "deleted"]),
    ),
    min_size=10,
    max_size=40,
)
"""Who is next, after which pause in seconds, and what happens then."""
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A shorter example would take minutes of requests."""


@settings(max_examples=40, deadline=None, phases=UNSHRUNK)
@given(TURNS, st.lists(st.floats(0.9, 1.1), min_size=3, max_size=3))
def test_never_do_two_lead_at_once(turns: list[tuple[int, float, str]], rates: list[float]) -> None:
    """Whoever is slow, stopped, or unheard, though clocks run apart by a fifth, and the Lease is
    touched and deleted now and then.
    """
    with world_of(*rates) as (api, world, all_):
        for each in all_:
            each.step()
        for number, pause_s, what in turns:
            world.now_s += pause_s
            _happens(api, all_, all_[number], what)
            leading = [each.term for each in all_ if each.term is not None]
            assert len(leading) <= 1


def _happens(api: ApiServer, all_: list[Runner], one: Runner, what: str) -> None:
    found = api.get("leases", KEY)
    match what:
        case "lost":
            api.faults["write"].append(unanswered)
            one.step()
            api.faults["write"].clear()
        case "resign":
            one.candidate.resign()
        case "touched" if found is not None:
            api.set("leases", found)
        case "deleted" if found is not None:
            # Not sooner than everybody saw it: an absence looks like the one before.
            for each in all_:
                each.step()
            api.delete("leases", KEY)
        case _:
            one.step()


@settings(max_examples=30, deadline=None, phases=UNSHRUNK)
@given(TURNS, st.booleans())
def test_each_new_leader_has_a_higher_term(
    turns: list[tuple[int, float, str]], deletions: bool
) -> None:
    """Whoever it is, and however often it changes. Where the Lease is deleted that is sure for each
    process by itself: one that missed a term may have it again.
    """
    terms: list[list[int]] = [[], [], []]
    seen: set[Fence] = set()
    with world_of(1.0, 1.0, 1.0) as (api, world, all_):
        for number, pause_s, what in turns:
            world.now_s += pause_s
            deleted = what == "deleted"
            _happens(api, all_, all_[number], "step" if deleted and not deletions else what)
            for place, each in enumerate(all_):
                fence = each.candidate.fence
                if fence is not None and fence not in seen:
                    seen.add(fence)
                    terms[place if deletions else 0].append(fence.term)
    for found in terms:
        assert found == sorted(set(found))


@contextmanager
def world_of(*rates: float) -> Iterator[tuple[ApiServer, World, list[Runner]]]:
    """An API server and candidates of one example."""
    api, world = ApiServer(), World()
    try:
        with (
            TemporaryDirectory() as folder,
            runners(api.settings(Path(folder)), world, *rates) as all_,
        ):
            yield api, world, all_
    finally:
        api.stop()
