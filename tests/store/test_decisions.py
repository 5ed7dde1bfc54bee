"""Decision records: shipped when the cache is there, never in the way when it is not."""

from __future__ import annotations

import threading
import time
from functools import partial

from redis import Redis
from servers import Cache, eventually, free_port

from extender.store import keys
from extender.store.connect import StoreSettings
from extender.store.decisions import RAW, DecisionLog


def records(client: Redis) -> list[bytes]:
    """What the stream holds, oldest first."""
    entries = client.xrange(keys.DECISIONS.name)
    assert isinstance(entries, list)
    return [fields[b"record"] for _, fields in entries]  # type: ignore[index,misc]


def test_records_arrive_in_order(store: StoreSettings, client: Redis) -> None:
    """Everything that is appended is shipped, in batches, without a call to flush."""
    log = DecisionLog(store)
    log.start()
    sent = [str(number).encode() for number in range(1000)]
    for record in sent:
        log.append(partial(bytes, record))
    eventually(lambda: log.shipped == 1000, "all records")
    assert records(client) == sent
    log.close()
    assert log.dropped == 0


def test_a_full_queue_drops_the_oldest_and_counts(cache: Cache) -> None:
    """While the cache is away the newest records wait, and appending never blocks. A batch that is on
    its way when the cache comes back is shipped too.
    """
    cache.kill()
    log = DecisionLog(cache.settings, capacity=100)
    log.start()
    slowest_s = 0.0
    for number in range(5000):
        began_s = time.monotonic()
        log.append(str(number).encode)
        slowest_s = max(slowest_s, time.monotonic() - began_s)
    cache.start()
    eventually(lambda: log.waiting == 0 and log.shipped + log.dropped == 5000, "the rest")
    log.close()
    client = Redis(port=cache.port)
    kept = records(client)
    client.close()
    newest = [str(number).encode() for number in range(4900, 5000)]
    assert kept[-100:] == newest
    assert 100 <= len(kept) == 5000 - log.dropped <= 200
    assert kept == sorted(kept, key=int)
    assert slowest_s < 0.9, "the cache is waited for up to TIMEOUT_S"


def test_a_paused_cache_blocks_nobody(cache: Cache) -> None:
    """While the server hangs, appending goes on; after the pause everything arrives."""
    log = DecisionLog(cache.settings)
    log.start()
    log.append(partial(bytes, b"before"))
    eventually(lambda: log.shipped == 1, "the first record")
    cache.pause()
    began_s = time.monotonic()
    for _ in range(100):
        log.append(partial(bytes, b"during"))
    assert time.monotonic() - began_s < 0.9, "the cache is waited for up to TIMEOUT_S"
    cache.resume()
    eventually(lambda: log.shipped == 101, "the rest")
    log.close()


def test_close_ships_what_waits(store: StoreSettings, client: Redis) -> None:
    """Records that were appended just before the end are not lost."""
    log = DecisionLog(store)
    log.start()
    for _ in range(300):
        log.append(partial(bytes, b"last"))
    log.close()
    assert (len(records(client)), log.dropped) == (300, 0)


def test_close_keeps_its_deadline() -> None:
    """With the cache gone for good, closing ends in time and counts what was lost."""
    log = DecisionLog(StoreSettings(url=f"redis://127.0.0.1:{free_port()}/0"))
    log.start()
    for _ in range(10):
        log.append(partial(bytes, b"lost"))
    began_s = time.monotonic()
    log.close(deadline_s=0.3)
    assert time.monotonic() - began_s < 5
    eventually(lambda: log.dropped == 10, "ten lost records")


def test_a_log_that_never_began_may_be_closed(store: StoreSettings) -> None:
    """Closing before the start loses the records, counted."""
    log = DecisionLog(store)
    log.append(partial(bytes, b"lost"))
    log.close()
    assert log.dropped == 1


def test_records_are_made_by_the_thread(store: StoreSettings, client: Redis) -> None:
    """Making one costs more than many a decision: whoever decides does not wait for it."""
    makers: list[str] = []

    def render() -> bytes:
        makers.append(threading.current_thread().name)
        return b"made"

    log = DecisionLog(store)
    log.start()
    log.append(render)
    eventually(lambda: log.shipped == 1, "the record")
    log.close()
    assert makers == ["surefoot-decisions"]
    assert records(client) == [b"made"]


def test_few_records_wait_to_be_made(store: StoreSettings, client: Redis) -> None:
    """What a record is made of is large: beyond a bound it is made at once, and order is kept."""
    made: list[int] = []

    def render(number: int) -> bytes:
        made.append(number)
        return str(number).encode()

    log = DecisionLog(store)
    for number in range(RAW + 10):
        log.append(partial(render, number))
    assert made == list(range(RAW, RAW + 10))
    log.start()
    log.close()
    assert records(client) == [str(number).encode() for number in range(RAW + 10)]


def test_a_record_that_cannot_be_made_costs_no_other(store: StoreSettings, client: Redis) -> None:
    """It is counted as dropped."""

    def render() -> bytes:
        raise ValueError("broken")

    log = DecisionLog(store)
    log.start()
    for each in (partial(bytes, b"before"), render, partial(bytes, b"after")):
        log.append(each)
    eventually(lambda: log.shipped == 2, "the others")
    log.close()
    assert (records(client), log.dropped) == ([b"before", b"after"], 1)
