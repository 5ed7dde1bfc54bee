"""Kernel events become findings that the fold can take."""

from __future__ import annotations

from health_days import QUIET, Day, sampled

from scoring.health.record import open_causes
from scoring.health.xid_findings import findings
from scoring.model import Health
from scoring.signals.catalogue import Signal
from scoring.xid.catalogue import Pattern
from scoring.xid.events import Lost, Xid
from scoring.xid.rules import rules_of


def xid(code: int, text: str = "", unix_s: float | None = None) -> Xid:
    """One XID of a GPU."""
    return Xid(pci="0000:1b:00.0", code=code, text=text, unix_s=unix_s)


def test_a_grave_event_opens_and_its_followers_are_recorded() -> None:
    """XID 48 drags 45 along: one cause, and one record."""
    found = findings([xid(48), xid(45)], time_s=100.0, boot_id="b", branch=570)
    assert [(f.cause, f.state, f.time_s) for f in found] == [
        ("xid.48", Health.RESET_REQUIRED, 100.0),
        ("xid.45", Health.HEALTHY, 100.0),
    ]
    assert [f.linked for f in found] == [True, False]


def test_the_time_of_the_log_wins() -> None:
    """The time given stands in only where the log has none."""
    (found,) = findings([xid(79, unix_s=42.0)], time_s=100.0)
    assert found.time_s == 42.0


def test_the_link_to_the_recovery_action_depends_on_the_driver() -> None:
    """An unknown branch proves nothing for a code that got its link with one."""
    assert [f.linked for f in findings([xid(109)], time_s=0.0, branch=570)] == [True]
    assert [f.linked for f in findings([xid(109)], time_s=0.0)] == [False]


def test_application_faults_carry_their_workload() -> None:
    """The pattern rule counts workloads."""
    (found,) = findings([xid(31)], time_s=0.0, workload="ns/job")
    assert (found.state, found.pattern, found.workload) == (
        Health.HEALTHY,
        Pattern.WORKLOADS,
        "ns/job",
    )


def test_site_rules_hold() -> None:
    """A code that the site only wants recorded opens nothing."""
    (found,) = findings([xid(95)], time_s=0.0, rules=rules_of({"xid.95": "RECORD"}))
    assert found.state is Health.HEALTHY


def test_a_lost_gpu_needs_no_xid() -> None:
    """The driver's words alone say so."""
    (found,) = findings([Lost(pci="0000:1b:00.0")], time_s=0.0)
    assert (found.cause, found.state) == ("gpu.lost", Health.REBOOT_REQUIRED)


def test_a_154_that_asks_for_nothing_ends_the_one_before() -> None:
    """The driver's own word opens and closes its own cause, and no other."""
    day = Day()
    asks = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    done = "GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)"
    told = findings([xid(119), xid(154, asks)], time_s=day.time_s + 1)
    assert day.poll(QUIET, *told) is Health.REBOOT_REQUIRED
    day.poll(QUIET, *findings([xid(154, done)], time_s=day.time_s + 1))
    assert [cause.id for cause in open_causes(day.record)] == ["xid.119"]


def test_162_ends_163() -> None:
    """The only event of another code that ends a cause."""
    day = Day()
    rules = rules_of({"xid.163": "DEGRADED"})
    day.poll(QUIET, *findings([xid(163)], time_s=day.time_s + 1, rules=rules))
    assert day.open == {"xid.163"}
    day.poll(QUIET, *findings([xid(162)], time_s=day.time_s + 1, rules=rules))
    assert day.open == set()


def test_a_reading_of_none_ends_a_154_by_the_usual_way() -> None:
    """Polled and told are the same action: SUSPECT, then probation."""
    day = Day()
    asks = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
    calm = sampled({Signal.RECOVERY_ACTION: 0})
    assert day.poll(calm, *findings([xid(154, asks)], time_s=day.time_s + 1)) is Health.SUSPECT
    assert day.poll(calm, times=2) is Health.PROBATION
