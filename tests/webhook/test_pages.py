"""What people and Prometheus read: health, metrics, version, and /explain."""

from __future__ import annotations

import pytest
from asking import pod
from machines import dgx_h100
from replicas import Replica, cause, fleet_of

from scoring.model import Health

GANG_8 = pod(8, gang="sweep")
SICK = dgx_h100(name="sick", causes={3: cause(Health.RESET_REQUIRED, "xid.48")})
FLEET = fleet_of(dgx_h100(name="well"), SICK)


class TestHealth:
    """/livez says that the process runs, /readyz that it can judge."""

    @pytest.mark.parametrize("path", ["/livez", "/healthz"])
    def test_a_replica_lives_whatever_its_cache_does(self, path: str) -> None:
        """A restart would lose the last snapshot and mend nothing."""
        answer = Replica().get(path)
        assert (answer.status, answer.text) == (200, "ok\n")

    def test_not_ready_before_the_first_snapshot(self) -> None:
        """503, with each check in words."""
        answer = Replica().get("/readyz")
        assert answer.status == 503
        assert "[-]snapshot none yet" in answer.text
        assert answer.text.endswith("not ready\n")

    def test_ready_with_a_snapshot(self) -> None:
        """One word, and on demand each check."""
        one = Replica(FLEET)
        assert (one.get("/readyz").status, one.get("/readyz").text) == (200, "ok\n")
        assert one.get("/readyz?verbose").text == (
            "[+]redis answers\n[+]snapshot generation 1\n[+]snapshot-age 0.0s of 300s\nready\n"
        )

    def test_a_cut_off_replica_stays_ready_until_its_snapshot_is_too_old(self) -> None:
        """All replicas lose Redis together: taking them all out would help nobody."""
        one = Replica(FLEET)
        one.connected = False
        one.now_s += 299
        assert one.get("/readyz").status == 200
        assert "[-]redis does not answer" in one.get("/readyz?verbose").text
        one.now_s += 2
        answer = one.get("/readyz")
        assert (answer.status, "[-]snapshot-age 301.0s of 300s" in answer.text) == (503, True)


class TestMetrics:
    """/metrics counts decisions, refusals and time."""

    def test_decisions_are_counted_by_verb_verdict_and_reason(self) -> None:
        """The reason of most nodes, where nothing passed."""
        one = Replica(FLEET)
        one.filter(GANG_8, ["well", "sick"])
        one.filter(GANG_8, ["sick", "u1", "u2"])
        one.prioritize(GANG_8, ["well"])
        one.preempt(GANG_8, {"sick": []})
        one.filter(pod(0), ["sick"])
        total = "surefoot_decisions_total"
        found = {key: value for key, value in one.values().items() if key.startswith(total)}
        assert found == {
            f'{total}{{reason="",verb="filter",verdict="pass"}}': 1,
            f'{total}{{reason="NodeUnreported",verb="filter",verdict="veto"}}': 1,
            f'{total}{{reason="",verb="prioritize",verdict="pass"}}': 1,
            f'{total}{{reason="ResetRequired",verb="preempt",verdict="veto"}}': 1,
            f'{total}{{reason="",verb="filter",verdict="bypass"}}': 1,
        }

    def test_time_is_measured_by_verb_and_status_from_half_a_millisecond(self) -> None:
        """Fine enough to see a goal of a few milliseconds."""
        one = Replica(FLEET)
        one.filter(GANG_8, ["well"])
        one.post("prioritize", b"junk")
        found = one.values()
        name = "surefoot_request_duration_seconds"
        assert found[f'{name}_count{{code="200",verb="filter"}}'] == 1
        assert found[f'{name}_count{{code="400",verb="prioritize"}}'] == 1
        assert f'{name}_bucket{{code="200",le="0.0005",verb="filter"}}' in found
        assert found[f'{name}_bucket{{code="200",le="+Inf",verb="filter"}}'] == 1

    def test_the_page_is_prometheus_text(self) -> None:
        """With the version that builds are told apart by."""
        answer = Replica().get("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert 'surefoot_build_info{version="0.0.test"} 1.0' in answer.text

    def test_the_version_is_json(self) -> None:
        """For scripts."""
        assert Replica().get("/version").json == {"version": "0.0.test"}


class TestExplain:
    """/explain tells every reason, and records nothing."""

    def test_the_shape(self) -> None:
        """As docs promise it: verdict, reason, rank, parts, set and evidence of each node."""
        one = Replica(FLEET)
        told = one.explain(GANG_8, ["well", "sick"])
        assert set(told) == {
            "decision", "generation", "ask", "summary", "counts", "nodes", "nearest",
        }  # fmt: skip
        assert told["generation"] == 1
        assert told["counts"] == {"ResetRequired": 1}
        assert told["ask"]["gang"] == {"key": "lab/sweep", "convention": "surefoot", "min": 2}
        assert (told["ask"]["count"], told["ask"]["work"]) == (8, "gang")
        assert "1 of 2 nodes fit" in told["summary"]
        sick, well = told["nodes"]["sick"], told["nodes"]["well"]
        assert (sick["verdict"], sick["reason"], sick["unresolvable"]) == (
            "veto", "ResetRequired", True,
        )  # fmt: skip
        assert sick["rank"] is None
        assert [each["cause"] for each in sick["evidence"]] == ["xid.48"]
        assert sick["evidence"][0]["gpu"] == "GPU-sick-3"
        assert (well["verdict"], well["reason"], well["evidence"]) == ("pass", None, [])
        assert 0 < well["rank"] <= 1
        assert set(well["parts"]) >= {"health", "links", "fragmentation", "domain", "trust"}
        assert len(well["set"]) == 8
        assert one.records == []

    def test_a_veto_says_what_would_cure_it(self) -> None:
        """Where nothing fits, the nearest miss."""
        told = Replica(FLEET).explain(GANG_8, ["sick"])
        assert told["summary"].startswith("None of 1 nodes fits a gang pod asking for 8")
        assert told["nearest"] == ["sick would do if GPU 3 were reset"]
        assert told["nodes"]["sick"]["advice"]

    def test_without_names_it_tells_of_every_node_that_the_cache_knows(self) -> None:
        """A person asks "why?" and has no list of nodes."""
        assert set(Replica(FLEET).explain(GANG_8)["nodes"]) == {"well", "sick"}

    def test_it_is_never_narrowed_but_limited_vetoed_ones_first(self) -> None:
        """Counts are those of all nodes; `limit` bounds what is told in full."""
        fits = [dgx_h100(name=f"well-{i:03}") for i in range(120)]
        one = Replica(fleet_of(*fits, SICK))
        told = one.explain(GANG_8)
        assert (len(told["nodes"]), next(iter(told["nodes"]))) == (100, "sick")
        assert len(one.explain(GANG_8, query="?limit=200")["nodes"]) == 121
        few = one.explain(GANG_8, query="?limit=0")
        assert (few["nodes"], few["counts"]) == ({}, {"ResetRequired": 1})

    @pytest.mark.parametrize("limit", ["-1", "ten", "", "1e3", "٣", "9999999"])
    def test_a_limit_that_is_no_number_is_a_400(self, limit: str) -> None:
        """One sentence that names it."""
        answer = Replica(FLEET).post(f"explain?limit={limit}", {"Pod": GANG_8})
        assert (answer.status, answer.json["Error"].startswith("limit: ")) == (400, True)

    def test_without_a_snapshot_it_says_so(self) -> None:
        """There is nothing to explain with, and /readyz says why."""
        answer = Replica().post("explain", {"Pod": GANG_8})
        assert (answer.status, "no snapshot" in answer.json["Error"]) == (503, True)

    def test_it_explains_by_the_last_snapshot_however_old(self) -> None:
        """An old picture with its age is better than none when a person asks."""
        one = Replica(FLEET)
        one.now_s += 10_000
        assert one.explain(GANG_8)["counts"] == {"ResetRequired": 1}

    def test_ids_differ_between_calls_and_replicas(self) -> None:
        """An explanation can be told from another in a ticket."""
        one, other = Replica(FLEET), Replica(FLEET)
        ids = [each.explain(GANG_8)["decision"] for each in (one, one, other, other)]
        assert len(set(ids)) == 4
