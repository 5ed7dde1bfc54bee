"""Plans on their way from a real cache to a real server's answers, and to the commands."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from asking import by_names, pod
from commands import Surefoot
from gang_records import KEY, UID
from papers import node_paper, paper
from servers import eventually
from serving import PATIENT, Serve

from extender.store.connect import StoreSettings
from extender.store.writer import Writer

NAMES = ["a", "b"]
MEMBER = pod(8, gang="sweep")
OFTEN = (
    "from extender.store.reader import Reader; Reader.__init__.__kwdefaults__['seen_every_s'] = 0.2"
)
"""The first leader is noticed with the stamps."""


@pytest.fixture
def writer(store: StoreSettings) -> Iterator[Writer]:
    """A leading controller's hand, on two healthy nodes."""
    made = Writer(store)
    made.put([*map(node_paper, NAMES)])
    yield made
    made.close()


def tell(writer: Writer, node: str | None, **fields: Any) -> None:
    """What the leader says of the gang: this member on `node`, or without a plan."""
    seat = {"pod": "rank-0", **({"node": node} if node else {})}
    state = "planned" if node else "waiting"
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    writer.put(
        [
            paper(
                "Plan", gang=KEY, convention="surefoot", hold="require", state=state, since=since,
                seats={UID: seat}, **fields,
            )
        ]
    )  # fmt: skip


def test_a_plan_reaches_answers_pages_and_commands(
    store: StoreSettings, writer: Writer, tmp_path: Path
) -> None:
    """Before it the gang waits, with it one node passes, and it moves as the leader says."""
    surefoot = Surefoot(store.url)
    with Serve(store, tmp_path / "log", before=OFTEN, **PATIENT) as serve:

        def passed() -> list[str]:
            found: list[str] = serve.post("filter", by_names(MEMBER, NAMES))["NodeNames"]
            return found

        def sits_on(node: str) -> bool:
            return passed() == [node]

        eventually(lambda: passed() == NAMES, "no leader: judged call by call")
        writer.lead(term=1)
        eventually(lambda: passed() == [], "it waits for its plan")
        tell(writer, None, lack="NoRoom", summary="No room.")
        eventually(lambda: serve.ask("GET", f"/gangs/{KEY}").status == 200, "the record")
        assert passed() == []
        assert surefoot("explain", "--gang", KEY).exit_code == 4
        for node in ("b", "a"):
            tell(writer, node)
            eventually(partial(sits_on, node), "its seat")
        (row,) = serve.ask("GET", "/gangs").json["gangs"]
        assert (row["state"], row["seated"]) == ("planned", 1)
        assert row["age_s"] < 60
        result = surefoot("explain", "--gang", KEY, "--json")
        assert (result.exit_code, json.loads(result.stdout)["members"][0]["node"]) == (0, "a")
        assert "planned" in surefoot("get", "gangs").stdout
