"""One look at the cache, for tools that do not follow it."""

from __future__ import annotations

from extender.store import load
from extender.store.connect import StoreSettings, connect
from extender.store.errors import reaching
from extender.store.load import Contents
from extender.store.picture import Picture
from extender.store.timeline import Timeline
from scoring.model import Fleet


def look(settings: StoreSettings) -> tuple[Fleet, Contents]:
    """The fleet now, and the documents that it was made of, as they are stored.

    Raises:
        StoreError: the cache cannot be read.
    """
    client = connect(settings)
    try:
        with reaching(settings.server):
            contents = load.contents(client)
    finally:
        client.close()
    timeline = Timeline(contents.redis_s)
    timeline.replace_stamps(contents.seen)
    timeline.take_leader(contents.leader)
    picture = Picture(contents)
    picture.expire(timeline.unix_s)
    return picture.fleet(contents.generation, timeline), contents
