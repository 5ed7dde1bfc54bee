"""A reflector lists once, then follows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from following import QUICK, Follow, pod
from kubes import ApiServer
from servers import eventually
from unsound import ends, says

from extender.kube.status import Restart

Begin = Callable[..., Follow]


def watches(api: ApiServer) -> list[str]:
    """The versions from which watches began."""
    return [query["resourceVersion"] for _, query in api.calls if "watch" in query]


def lists(api: ApiServer) -> int:
    """How many pages were asked for."""
    return sum("watch" not in query for _, query in api.calls)


def test_it_lists_and_then_follows(api: ApiServer, follow: Begin) -> None:
    """What is there comes as a whole, what changes afterwards one by one."""
    api.set("pods", pod("a"))
    api.set("pods", pod("b"))
    seen = follow()
    eventually(lambda: seen.status.synced, "synced")
    assert set(seen.now) == {"lab/a", "lab/b"}
    api.set("pods", pod("c"))
    api.set("pods", pod("a"))
    api.delete("pods", "lab/b")
    eventually(lambda: set(seen.now) == {"lab/a", "lab/c"}, "the changes")
    assert seen.said == ["listing", "listed", "lab/c here", "lab/a here", "lab/b gone"]
    assert seen.now["lab/a"] == "104"
    assert (lists(api), watches(api)) == (1, ["102"])


def test_an_empty_cluster_is_synced_too(follow: Begin, api: ApiServer) -> None:
    """Nothing is a whole list."""
    seen = follow()
    eventually(lambda: seen.status.synced, "synced")
    api.set("pods", pod("a"))
    eventually(lambda: "lab/a" in seen.now, "the first pod")


def test_a_list_comes_in_pages_on_one_connection(api: ApiServer, follow: Begin) -> None:
    """Bodies are read to their end, so that no page costs a new connection."""
    api.page_size = 2
    for number in range(15):
        api.set("pods", pod(f"p{number}"))
    seen = follow()
    eventually(lambda: len(watches(api)) == 1, "a watch")
    assert (len(seen.now), lists(api), api.connections) == (15, 8, 1)
    assert all(query["limit"] == "500" for _, query in api.calls if "limit" in query)


def test_what_the_handler_does_not_want_is_not_kept(api: ApiServer, follow: Begin) -> None:
    """`None` from `read` hides an object, and takes it back where it was wanted before."""
    api.set("pods", pod("boring-1"))
    seen = follow()
    eventually(lambda: seen.status.synced, "synced")
    api.set("pods", pod("boring-2"))
    eventually(lambda: seen.said[-1] == "lab/boring-2 gone", "the change")
    assert seen.now == {}
    assert seen.status.skipped == 0


def test_a_watch_that_ends_goes_on_where_it_was(api: ApiServer, follow: Begin) -> None:
    """The server ends each watch after a while: no list, no event twice."""
    api.set("pods", pod("a"))
    seen = follow(replace(QUICK, watch_s=0.5))
    eventually(lambda: seen.status.synced, "synced")
    api.set("pods", pod("b"))
    eventually(lambda: seen.reflector.restarts[Restart.ENDED] >= 1, "the end of a watch")
    eventually(lambda: len(watches(api)) >= 2, "the next watch")
    assert watches(api)[:2] == ["101", "102"]
    assert (lists(api), seen.said.count("lab/b here")) == (1, 1)
    assert seen.status.problem is None


def test_a_bookmark_moves_the_version_and_nothing_else(
    api: ApiServer, follow: Begin, release: threading.Event
) -> None:
    """A quiet kind of objects stays fresh: its next watch begins at the bookmark."""
    api.faults["watch"].append(
        says(b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"207"}}}\n')
    )
    seen = follow()
    eventually(lambda: len(watches(api)) == 2, "the next watch")
    assert watches(api) == ["100", "207"]
    assert seen.said == ["listing", "listed"]


def test_how_long_nothing_was_heard_is_visible(
    api: ApiServer, follow: Begin, release: threading.Event
) -> None:
    """The age counts from the last page, event or bookmark."""
    seen = follow()
    eventually(lambda: seen.status.synced, "synced")
    before_s = seen.status.heard_s
    assert before_s is not None
    assert seen.status.silence_s(before_s + 5) == 5
    api.set("pods", pod("a"))
    eventually(lambda: (seen.status.heard_s or 0) > before_s, "a sign of life")


def test_a_new_list_can_be_asked_for(api: ApiServer, follow: Begin) -> None:
    """Whatever the watch is doing, and once for each time."""
    seen = follow()
    eventually(lambda: len(watches(api)) == 1, "a watch")
    seen.reflector.relist()
    eventually(lambda: seen.said.count("listed") == 2, "the second list")
    assert seen.reflector.restarts[Restart.ASKED] == 1
    assert seen.status.problem is None


def test_a_list_asked_for_in_a_pause_comes_before_the_next_watch(
    api: ApiServer, follow: Begin
) -> None:
    """A quiet kind of objects may say nothing for a minute, and the list would wait for it."""
    api.faults["watch"].append(ends)
    seen = follow(replace(QUICK, first_pause_s=2.0, last_pause_s=2.0))
    eventually(lambda: seen.reflector.restarts[Restart.ENDED] == 1, "the pause")
    seen.reflector.relist()
    eventually(lambda: seen.said.count("listed") == 2, "the second list")
    eventually(lambda: len(watches(api)) == 2, "the watch after it")
    assert ["watch" in query for _, query in api.calls] == [False, True, False, True]


def test_it_is_fresh_while_it_hears_the_server(api: ApiServer, follow: Begin) -> None:
    """Within the time that a watch may be silent; before the first word it is not."""
    api.stop()
    seen = follow(replace(QUICK, silence_s=0.5))
    eventually(lambda: seen.status.problem, "a problem")
    assert not seen.reflector.fresh
    api.start()
    eventually(lambda: seen.reflector.fresh, "a word")
    api.stop()
    eventually(lambda: not seen.reflector.fresh, "silence")
    api.start()


def test_watches_that_end_at_once_do_not_spin(api: ApiServer, follow: Begin) -> None:
    """A server that ends every watch properly, but at once, is asked ever less often."""
    api.faults["watch"].extend([ends] * 1000)
    follow(replace(QUICK, first_pause_s=0.1, last_pause_s=30.0))
    eventually(lambda: len(watches(api)) >= 3, "some watches")
    threading.Event().wait(1.0)
    assert len(watches(api)) <= 8


def test_the_token_goes_along(api: ApiServer, follow: Begin) -> None:
    """Every request says who we are."""
    follow()
    eventually(lambda: len(watches(api)) == 1, "a watch")
    assert set(api.tokens) == {"Bearer a-token"}
