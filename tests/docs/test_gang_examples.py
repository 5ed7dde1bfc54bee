"""The examples of docs/gangs.md are read as the page says: each by its convention, and as large."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest
from asking import Json
from examples import SIZE, GangExample, gang_examples, multiplied
from msgspec import Raw

from extender.controller.cluster.groups import SOURCES, Source
from extender.controller.cluster.pods import PodReader
from extender.controller.cluster.roster import Said
from extender.controller.cluster.shapes import POD
from scoring.gangs.gathering import Crew, GangId, gather
from scoring.gangs.rules import GangRules, Hold
from scoring.gangs.values import GangPod, Gathered, Group
from scoring.model import Convention
from scoring.planning.values import NO_TOPOLOGY, Topology
from scoring.policy import DEFAULT
from scoring.topology import Level

EXAMPLES: Final = gang_examples()
ALL: Final = GangRules(plan=dict.fromkeys(Convention, Hold.REQUIRE))
UNSAID: Final = frozenset({Convention.RAY})
"""The page says of these that their size stays unknown."""
NEAR: Final = {
    "surefoot-0": Topology(preferred=Level.RACK),
    "native": Topology(required="topology.kubernetes.io/rack"),
}
"""What examples ask of topology."""

by_example = pytest.mark.parametrize("example", EXAMPLES, ids=[each.name for each in EXAMPLES])


def _stored(body: Json) -> Json:
    """An object as the API server would have it."""
    metadata = body["metadata"]
    return {**body, "metadata": {"uid": f"uid-{metadata['name']}", **metadata}}


def _row(body: Json) -> Source:
    """Who reads objects of this kind."""
    group, _, version = body["apiVersion"].partition("/")
    resource = f"{body['kind'].lower()}s"
    (row,) = (each for each in SOURCES if (each.group, each.resource) == (group, resource))
    assert version in row.versions
    return row


def _said(example: GangExample) -> list[Said]:
    """What its objects say."""
    return [
        said
        for body in example.beside
        for said in _row(body).read(Raw(msgspec.json.encode(_stored(body))))
    ]


def _made(job: Json) -> list[Json]:
    """The pods that a Job makes at one time."""
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    template = job["spec"]["template"]
    owner = {"kind": "Job", "name": name, "uid": f"uid-{name}", "controller": True}
    metadata = {**template["metadata"], "namespace": namespace, "ownerReferences": [owner]}
    pod = {"metadata": {**metadata, "name": f"{name}-0"}, "spec": template["spec"]}
    return multiplied(pod, job["spec"]["parallelism"])


def _members(example: GangExample) -> list[GangPod]:
    """All pods of the gang, as the controller keeps them."""
    bodies = [each for pod in example.pods for each in multiplied(pod)]
    bodies += [each for job in example.beside if job["kind"] == "Job" for each in _made(job)]
    found = []
    for body in bodies:
        kept = PodReader(DEFAULT, ALL).read(POD.decode(msgspec.json.encode(_stored(body))))
        assert kept is not None
        assert kept.member is not None
        found.append(kept.member)
    return found


def _gathered(example: GangExample) -> Gathered:
    """The one gang that the example shows."""
    said = _said(example)
    groups = {GangId(each.key, each.convention): each for each in said if isinstance(each, Group)}
    crews = {each.uid: each for each in said if isinstance(each, Crew)}
    (gang,) = gather(_members(example), groups, crews, ALL)
    return gang


def test_every_convention_has_an_example() -> None:
    """In the order in which they are tried."""
    assert list(dict.fromkeys(each.convention for each in EXAMPLES)) == list(Convention)


@by_example
def test_it_is_a_gang_of_the_convention_under_which_it_stands(example: GangExample) -> None:
    """Its pods name one gang, and no earlier convention claims them."""
    assert {pod.gang.convention for pod in _members(example)} == {example.convention}
    assert len({pod.gang.key for pod in _members(example)}) == 1


@by_example
def test_it_is_as_large_as_the_page_says(example: GangExample) -> None:
    """By the pods themselves, by the object beside them, or by their Job; or nobody says."""
    gang = _gathered(example)
    needed = None if example.convention in UNSAID else SIZE
    assert gang.min == needed
    assert gang.size in (None, needed)
    assert len(gang.members) == SIZE
    assert gang.hold is Hold.REQUIRE


@by_example
def test_it_says_how_near_its_members_shall_be(example: GangExample) -> None:
    """Where the page names a level."""
    pending = _gathered(example).pending
    assert pending is not None
    assert pending.topology == NEAR.get(example.name, NO_TOPOLOGY)


@by_example
def test_every_member_wants_a_whole_node(example: GangExample) -> None:
    """So that a gang of the page needs as many nodes as it has members."""
    assert {pod.member.shape.need.count for pod in _members(example)} == {8}
