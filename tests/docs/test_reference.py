"""What people read: complete, and true to the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pages
import pytest
import yaml
from click.testing import CliRunner

from extender import reference, wiring
from extender.cli import COMMANDS
from extender.cli.inspect import KINDS
from extender.config import load
from extender.config.model import Mode, SurefootConfig
from extender.controller.control import Controller, ControlSettings
from extender.kube.settings import KubeSettings
from extender.kube.status import Restart
from extender.reference.__main__ import main
from extender.store import keys, schema
from extender.store.connect import StoreSettings
from extender.version import VERSION
from extender.webhook.answers import Decision, Outcome
from extender.webhook.explanations import explanation
from extender.webhook.records import Record
from scoring import picture, topology
from scoring.gangs.rules import GangRules
from scoring.health.causes import SPECS, Clear
from scoring.model import Ask, Convention, Fleet, Health, Need, NodeName, PodUid, WorkClass
from scoring.policy import DEFAULT
from scoring.reasons import Reason
from scoring.xid.catalogue import CATALOGUE

ASK = Ask(namespace="ml", name="p", uid=PodUid("u"), need=Need(work=WorkClass.SINGLE, count=1))


# --- pages that are written from the code --------------------------------------------------------


def test_generated_pages_are_fresh() -> None:
    """The pages in docs/ are what the code says now; `make docs` writes them."""
    assert reference.stale() == []


def test_check_fails_with_a_list_of_stale_pages(tmp_path: Path) -> None:
    """`--check` names each page that is missing or differs, and writes none."""
    arguments = ["--docs", str(tmp_path)]
    missing = CliRunner().invoke(main, ["--check", *arguments])
    assert missing.exit_code == 1
    assert all(f"docs/{name} is out of date" in missing.output for name in reference.PAGES)
    assert list(tmp_path.iterdir()) == []
    CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert CliRunner().invoke(main, ["--check", *arguments]).exit_code == 0
    (tmp_path / "reasons.md").write_text("old", encoding="utf-8")
    stale = CliRunner().invoke(main, ["--check", *arguments])
    assert stale.exit_code == 1
    assert stale.output.count("out of date") == 1


def test_every_configuration_field_is_documented() -> None:
    """Path, variable, a meaning and a default of each field stand in one row."""
    rows = {
        row.split("`")[1]: row
        for row in pages.text("docs/configuration.md").splitlines()
        if row.startswith("| `")
    }
    for path, spec in load.leaves(SurefootConfig):
        cells = [cell.strip() for cell in rows[".".join(path)].split(" | ")]
        assert len(cells) == 5
        assert all(cells)
        assert spec.description
        if len(path) > 1:
            assert cells[3] == f"`{load.variable(path)}`"


def test_every_reason_is_documented() -> None:
    """Name, text and advice of each reason are on its page."""
    page = pages.text("docs/reasons.md")
    for reason in Reason:
        assert f"| `{reason.value}` | {reason.text} |" in page
        assert reason.advice in page


def test_every_state_cause_rule_and_xid_is_documented() -> None:
    """Whatever `get` or an inspector prints can be looked up."""
    page = pages.text("docs/health.md")
    assert all(f"| `{state.name}` |" in page for state in Health)
    assert all(f"| `{spec.id}` |" in page and spec.meaning in page for spec in SPECS)
    assert all(f"| {rule.value} |" in page for rule in Clear)
    assert all(entry.meaning in page for entry in CATALOGUE.values())


# --- pages that people write ---------------------------------------------------------------------


@pytest.fixture(scope="module", name="client")
def _client() -> Any:
    return wiring.webhook(SurefootConfig()).app.test_client()


@pytest.fixture(scope="module", name="of_the_controller")
def _of_the_controller() -> Iterator[str]:
    """Its page of metrics."""
    made = Controller(
        ControlSettings(
            kube=KubeSettings(), store=StoreSettings(), bind=("127.0.0.1", 0), version=VERSION
        )
    )
    yield made.metrics.page().decode()
    made.close()


def test_every_metric_is_documented_and_no_other(client: Any, of_the_controller: str) -> None:
    """docs/metrics.md lists what /metrics shows; no page names a metric that is not there."""
    shown = client.get("/metrics").text + of_the_controller
    names = set(re.findall(r"^# TYPE (\w+)", shown, re.MULTILINE))
    names = {name for name in names if not name.endswith("_created")}
    page = pages.text("docs/metrics.md")
    assert {name for name in names if f"| `{name}` |" not in page} == set()
    for file in pages.markdown():
        named = set(re.findall(r"\bsurefoot_[a-z_]+", file.read_text(encoding="utf-8")))
        assert {re.sub(r"_(count|sum|bucket)$", "", name) for name in named} <= names, file


def test_every_verdict_is_documented() -> None:
    """The label `verdict` and the field of records have known values."""
    page = pages.text("docs/metrics.md")
    assert all(f"| `{outcome.value}` |" in page for outcome in Outcome)


def test_every_reason_to_restart_a_watch_is_documented() -> None:
    """The label `reason` of the controller has known values."""
    page = pages.text("docs/metrics.md")
    assert all(f"| `{reason.value}` |" in page for reason in Restart)


def test_every_path_of_the_server_is_documented(client: Any) -> None:
    """Each route stands on some page."""
    prose = "\n".join(file.read_text(encoding="utf-8") for file in pages.markdown())
    for rule in client.application.url_map.iter_rules():
        assert f"/{rule.endpoint}" in prose


def test_every_label_and_annotation_is_documented() -> None:
    """Each `surefoot.dev/` name that the code knows is on docs/annotations.md."""
    page = pages.text("docs/annotations.md")
    for package in ("scoring", "extender"):
        for file in (pages.ROOT / package).rglob("*.py"):
            for name in re.findall(
                r"surefoot\.dev/[a-z-]+\b(?!\d)", file.read_text(encoding="utf-8")
            ):
                assert f"`{name}`" in page, f"{name} of {file}"


def test_every_convention_and_domain_label_is_documented() -> None:
    """What makes a gang, and what names a domain, can be looked up."""
    page = pages.text("docs/annotations.md")
    assert all(f"| `{convention.value}` |" in page for convention in Convention)
    labels = (
        *(label for each in topology.LABELS.values() for label in each),
        topology.CLIQUE_LABEL,
    )
    assert all(f"`{label}`" in page for label in labels)


def test_every_kind_and_field_of_a_document_is_documented() -> None:
    """docs/documents.md has a heading for each kind and names each of its fields."""
    page = pages.text("docs/documents.md")
    for kind, shape in schema.SHAPES.items():
        assert f"\n## {kind.value}\n" in page
        section = page.split(f"\n## {kind.value}\n")[1].split("\n## ")[0]
        shapes: list[type[msgspec.Struct]] = [shape]
        if kind is schema.Kind.NODE:
            shapes += [schema.GpuDoc, schema.CauseDoc, schema.FabricDoc]
        if kind is schema.Kind.CLUSTER_NODE:
            shapes.append(schema.TaintDoc)
        if kind is schema.Kind.PLAN:
            shapes.append(schema.SeatDoc)
        for each in shapes:
            names = {field.encode_name for field in msgspec.structs.fields(each)}
            for name in names - {"apiVersion", "kind", "metadata"}:
                assert f"`{name}`" in section, f"{kind.value}: {name}"


def test_the_documents_in_the_docs_can_be_put() -> None:
    """Every example of a document is one."""
    from extender.store import documents  # noqa: PLC0415 - for this test only

    for file in pages.markdown():
        for block in pages.fenced(file, "yaml"):
            if "surefoot.dev/v1\n" in block:
                assert documents.parse(block), file


def test_the_configurations_in_the_docs_are_sound(tmp_path: Path) -> None:
    """Every example of a configuration loads."""
    found = [
        block
        for file in pages.markdown()
        for block in pages.fenced(file, "yaml")
        if "kind: SurefootConfig" in block
    ]
    assert found
    for block in found:
        (tmp_path / "surefoot.yaml").write_text(block, encoding="utf-8")
        load.load(tmp_path / "surefoot.yaml", {})


def test_every_field_of_a_decision_record_is_documented() -> None:
    """docs/decisions.md names each field of a record and of its ask."""
    page = pages.text("docs/decisions.md")
    record = Record(
        id="r-1",
        verb="filter",
        at_s=0.0,
        took_s=0.0,
        mode=Mode.OBSERVE,
        ask=ASK,
        names=frozenset(),
        decision=Decision(outcome=Outcome.PASS),
        generation=None,
        now_s=None,
        policy="",
    )
    fields = record.fields()
    assert all(f"`{name}`" in page for name in (*fields, *fields["ask"]))
    assert f"`{keys.DECISIONS.name}`" in page


def test_every_field_of_an_explanation_is_documented() -> None:
    """docs/explain.md names each field of the answer and of a node in it."""
    page = pages.text("docs/explain.md")
    fleet = Fleet(
        generation=1, now_s=0.0, nodes={}, seen_s={}, allocations={}, gangs={}, overrides={}, breakers={}
    )  # fmt: skip
    told = explanation(
        picture.picture(fleet, DEFAULT),
        ASK,
        (NodeName("n"),),
        None,
        GangRules(),
        decision="offline",
    )
    (node,) = told["nodes"].values()
    table = "\n".join(line for line in page.splitlines() if line.startswith("| "))
    assert all(f"`{name}" in table for name in told if name != "nodes")
    assert all(f".{name}`" in table or f"`{name}`" in table for name in node)


def test_every_command_is_documented_and_no_other() -> None:
    """docs/cli.md has a row for each command; no page tells of one that is not there."""
    page = pages.text("docs/cli.md")
    assert all(f"| `surefoot {name}" in page for name in COMMANDS)
    for file in pages.markdown():
        text = file.read_text(encoding="utf-8")
        named = re.findall(r"(?:`|^\s*\$? ?|\| )surefoot ([a-z][a-z-]*)", text, re.MULTILINE)
        assert set(named) <= set(COMMANDS), file


def test_every_inspector_is_documented() -> None:
    """docs/inspect.md has a section for each kind of text."""
    page = pages.text("docs/inspect.md")
    assert all(f"\n## `inspect {kind}`\n" in page for kind in KINDS)


# --- links, commands, pictures -------------------------------------------------------------------


@pytest.mark.parametrize(
    "page", pages.markdown(), ids=lambda page: str(page.relative_to(pages.ROOT))
)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Files that are linked exist, and have the heading that is meant."""
    for link in pages.links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        if anchor:
            assert anchor in pages.anchors(target), link


def test_pages_that_the_code_cites_exist() -> None:
    """A docstring or help text that sends people to a page is right."""
    for package in ("scoring", "extender"):
        for file in (pages.ROOT / package).rglob("*.py"):
            for cited in re.findall(r"\bdocs/[\w/.-]*\w", file.read_text(encoding="utf-8")):
                found = list(pages.ROOT.glob(cited if cited.endswith(".md") else f"{cited}*"))
                assert found, f"{cited} in {file}"


def test_every_make_target_that_is_named_exists() -> None:
    """`make x` in a page is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", pages.text("Makefile"), re.MULTILINE))
    for file in pages.markdown():
        named = re.findall(
            r"(?:`|^ *)make ([a-z][a-z0-9-]*)", file.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert set(named) <= targets, file
    assert {"demo", "test"} <= set(
        re.findall(r"^make ([a-z]+)", pages.text("README.md"), re.MULTILINE)
    )


def test_every_decision_on_design_is_listed() -> None:
    """docs/adr/README.md links each record; numbers are not used twice."""
    index = pages.text("docs/adr/README.md")
    records = sorted(file.name for file in (pages.DOCS / "adr").glob("[0-9]*.md"))
    assert all(f"]({name})" in index for name in records)
    numbers = [int(name[:4]) for name in records]
    assert numbers == list(range(1, len(numbers) + 1))
    for name in records:
        text = pages.text(f"docs/adr/{name}")
        assert text.startswith(f"# {name[:4]}: ")
        assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Consequences"))


def test_the_changelog_has_this_version() -> None:
    """What is released next, or was released last, is in the changelog."""
    assert VERSION in pages.text("CHANGELOG.md")


@pytest.mark.parametrize("picture_", sorted(pages.DOCS.glob("*.svg")), ids=lambda file: file.name)
def test_pictures_are_drawings_for_light_and_dark(picture_: Path) -> None:
    """A picture is sound XML with a title and a description, and follows the reader's colours."""
    text = picture_.read_text(encoding="utf-8")
    root = ET.fromstring(text)
    names = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert {"title", "desc"} <= set(names)
    assert "script" not in names
    assert "href" not in text
    assert "prefers-color-scheme: dark" in text
    assert all(float(size) >= 13 for size in re.findall(r'font-size(?:="|: )([\d.]+)', text))


# --- kube-scheduler's configuration --------------------------------------------------------------


def test_the_scheduler_snippet_and_the_file_say_the_same() -> None:
    """README's snippet is deploy/scheduler-config/extender.yaml without its comments."""
    (snippet,) = (b for b in pages.fenced(pages.ROOT / "README.md", "yaml") if "extenders:" in b)
    assert yaml.safe_load(snippet) == yaml.safe_load(
        pages.text("deploy/scheduler-config/extender.yaml")
    )
