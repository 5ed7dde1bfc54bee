"""The table of versions says what the tests said."""

from __future__ import annotations

from pathlib import Path

from e2e.matrix import Column, Outcome, Result, keep, kept, page, results

REPORT = """\
<testsuites><testsuite>
<testcase classname="tests.e2e.test_vetoes" name="a"/>
<testcase classname="tests.e2e.test_vetoes" name="b"><failure message="no"/></testcase>
<testcase classname="tests.e2e.test_vetoes" name="c"><error message="teardown"/></testcase>
<testcase classname="tests.e2e.test_failures" name="d"><skipped message="not yet"/></testcase>
</testsuite></testsuites>
"""
VETOES, FAILURES = "test_vetoes.py", "test_failures.py"


def _result(file: str, outcome: Outcome, reason: str = "") -> Result:
    return Result(file=file, outcome=outcome, reason=reason)


def test_a_report_is_read_test_by_test(tmp_path: Path) -> None:
    """An error, of a fixture or of the teardown, is a failure; a skip has its reason."""
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert list(results(report)) == [
        _result(VETOES, Outcome.PASSED),
        _result(VETOES, Outcome.FAILED),
        _result(VETOES, Outcome.FAILED),
        _result(FAILURES, Outcome.SKIPPED, "not yet"),
    ]


def test_the_page_counts_by_file_and_version() -> None:
    """Failures stand out, reasons are numbered, and a version that ran for another is named."""
    old = Column(
        wanted="1.34.9",
        version="1.34.4",
        results=(
            _result(VETOES, Outcome.PASSED),
            _result(VETOES, Outcome.PASSED),
            _result(VETOES, Outcome.SKIPPED, "gangs came with Kubernetes 1.37"),
        ),
    )
    new = Column(
        wanted="1.37.2",
        version="1.37.2",
        results=(_result(VETOES, Outcome.FAILED), _result(FAILURES, Outcome.PASSED)),
    )
    lines = page([old, new]).splitlines()
    assert "| behaviour | 1.34.4 | 1.37.2 |" in lines
    (vetoes,) = (line for line in lines if VETOES in line)
    assert vetoes.endswith("| 2 passed, 1 skipped (1) | 1 **failed** |")
    (failures,) = (line for line in lines if FAILURES in line)
    assert failures.endswith("| none | 1 passed |")
    assert "1. gangs came with Kubernetes 1.37" in lines
    assert any(line.startswith("1.34.9 is not served") for line in lines)


def test_a_file_that_runs_again_takes_the_place_of_its_earlier_results(tmp_path: Path) -> None:
    """What other files came to stays, version by version."""
    first = (_result(VETOES, Outcome.FAILED), _result(FAILURES, Outcome.PASSED))
    keep(tmp_path, Column(wanted="1.37.2", version="1.37.2", results=first))
    keep(tmp_path, Column(wanted="1.36.3", version="1.36.3", results=first))
    again = (_result(VETOES, Outcome.PASSED),)
    keep(tmp_path, Column(wanted="1.37.2", version="1.37.2", results=again))
    found = kept(tmp_path)
    assert set(found["1.37.2"].results) == {
        _result(VETOES, Outcome.PASSED),
        _result(FAILURES, Outcome.PASSED),
    }
    assert found["1.36.3"].results == first


def test_results_of_another_patch_release_are_not_mixed_in(tmp_path: Path) -> None:
    """A column is of one version."""
    old = (_result(FAILURES, Outcome.PASSED),)
    keep(tmp_path, Column(wanted="1.34.9", version="1.34.4", results=old))
    now = (_result(VETOES, Outcome.PASSED),)
    keep(tmp_path, Column(wanted="1.34.9", version="1.34.9", results=now))
    assert kept(tmp_path)["1.34.9"].results == now
