"""The configuration: what is accepted, and what people are told when it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from extender.config import durations, load, policies, reading
from extender.config.load import ConfigError
from extender.config.model import Mode, SurefootConfig
from scoring import policy as policy_of_scoring
from scoring import settings as settings_of_scoring


def _load(tmp_path: Path, text: str, **environment: str) -> SurefootConfig:
    file = tmp_path / "surefoot.yaml"
    file.write_text(text, encoding="utf-8")
    return load.load(file, environment)


def _problems(tmp_path: Path, text: str, **environment: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text, **environment)
    return caught.value.problems


def test_defaults_are_those_of_the_contract() -> None:
    """Without a file and without variables, Surefoot observes and fails open."""
    config = load.load(None, {})
    assert config.webhook.mode is Mode.OBSERVE
    assert config.webhook.bind == "127.0.0.1:8888"
    assert config.webhook.failure_policy == "open"
    assert config.webhook.unknown_nodes == "single"
    assert config.webhook.narrow == 32
    assert config.webhook.max_snapshot_age == 300.0
    assert config.store.url == "redis://localhost:6379/0"
    assert load.policy_of(config) == policy_of_scoring.DEFAULT


def test_policy_keys_may_be_dotted_or_nested(tmp_path: Path) -> None:
    """`gang.suspect: true` and `gang: {suspect: true}` say the same."""
    dotted = _load(tmp_path, "policy: {gang.suspect: true, starvation.after: 5m, probation: 2h}")
    nested = _load(
        tmp_path, "policy: {gang: {suspect: true}, starvation: {after: 5m}, probation: 2h}"
    )
    assert dotted == nested
    assert load.policy_of(dotted).gang.suspect
    assert load.policy_of(dotted).probation_s == 7200.0


def test_a_policy_key_given_in_both_ways_is_refused(tmp_path: Path) -> None:
    """Nobody has to guess which of two values counts."""
    (problem,) = _problems(tmp_path, "policy: {gang.suspect: true, gang: {suspect: false}}")
    assert "given twice" in problem


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    """A variable replaces the field that its name spells."""
    config = _load(
        tmp_path,
        "webhook: {mode: observe, narrow: 4}",
        SUREFOOT_WEBHOOK__MODE="enforce",
        SUREFOOT_WEBHOOK__MAX_SNAPSHOT_AGE="90s",
        SUREFOOT_WEBHOOK__SCHEDULER_NAMES="surefoot, default-scheduler",
        SUREFOOT_POLICY__GANG__SUSPECT="true",
        SUREFOOT_STORE__SENTINEL__HOSTS="[a:26379, b:26379]",
        SUREFOOT_STORE__SENTINEL__SERVICE="cache",
    )
    assert config.webhook.mode is Mode.ENFORCE
    assert config.webhook.narrow == 4
    assert config.webhook.max_snapshot_age == 90.0
    assert config.webhook.scheduler_names == ("surefoot", "default-scheduler")
    assert load.policy_of(config).gang.suspect
    assert config.store.sentinel is not None
    assert config.store.sentinel.hosts == ("a:26379", "b:26379")


def test_every_field_has_a_variable_of_its_own() -> None:
    """No two fields share a path or a variable, so none is out of reach."""
    paths = [path for path, _ in load.leaves(SurefootConfig)]
    assert len(set(paths)) == len(paths)
    assert len({load.variable(path) for path in paths}) == len(paths)


def test_every_threshold_of_the_policy_can_be_set() -> None:
    """The section has a field for each leaf of `scoring.policy`, under a name of its own."""
    wanted = {
        ("policy", *(policies.camel(part) for part in path.split(".")))
        for path, _, _ in settings_of_scoring.settings(policy_of_scoring.DEFAULT)
    }
    found = {path for path, _ in load.leaves(SurefootConfig) if path[0] == "policy"}
    assert found == wanted


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("webhook: {mode: enforc}", "webhook.mode: 'enforc' is not allowed, allowed is observe, enforce, did you mean enforce?"),
        ("webhook: {narow: 3}", "webhook.narow: no such field, did you mean narrow?"),
        ("webhook: {maxSnapshotAge: 5}", "webhook.maxSnapshotAge: 5 has no unit, write it like 5s"),
        ("webhook: {maxSnapshotAge: soon}", "webhook.maxSnapshotAge: 'soon' is no duration, write it like 300ms, 90s, 1m30s or 4h"),
        ("webhook: {bind: here}", "webhook.bind: 'here' is no address, write it like 127.0.0.1:8888 or [::1]:8888"),
        ("webhook: {bind: ':99999'}", "webhook.bind: ':99999' is no address, write it like 127.0.0.1:8888 or [::1]:8888"),
        ("webhook: {narrow: -1}", "webhook.narrow: -1 is not allowed, allowed is 0 or more"),
        ("store: {url: 'http://x'}", "store.url: must begin with redis://, rediss:// or unix:// and name a server"),
        ("store: {url: 'redis://[::1/0'}", "store.url: names no server and port, write it like redis://cache:6379/0 or redis://[::1]:6379/0, with what is special in a password percent-encoded"),
        ("store: {url: 'redis://:secret/word@h:1/0'}", "store.url: names no server and port, write it like redis://cache:6379/0 or redis://[::1]:6379/0, with what is special in a password percent-encoded"),
        ("store: {url: 'redis://h:99999/0'}", "store.url: names no server and port, write it like redis://cache:6379/0 or redis://[::1]:6379/0, with what is special in a password percent-encoded"),
        ("store: {tls: {cert: a.pem}}", "store.tls: cert and key come together"),
        ("policy: {entrypolls: 3}", "policy.entrypolls: no such field, did you mean entryPolls?"),
        ("policy: {entryPolls: 0}", "policy.entryPolls: 0 is out of range, allowed is 1 or more"),
        ("policy: {staleAfter: 900s}", "policy.unknownAfter: must not be shorter than staleAfter"),
        ("policy: {breaker.gangs: maybe}", "policy.breaker.gangs: 'maybe' is not allowed, allowed is refuse, admit"),
        ("apiVersion: surefoot.dev/v2", "apiVersion: 'surefoot.dev/v2' is not allowed, allowed is surefoot.dev/v1alpha1, did you mean surefoot.dev/v1alpha1?"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_by_path_with_what_is_allowed(
    tmp_path: Path, text: str, told: str
) -> None:
    """Each mistake is one sentence that a person can act on."""
    assert _problems(tmp_path, text) == [told]


@pytest.mark.parametrize(
    ("text", "silence", "lease"),
    [
        ("policy: {gang.leaderSilence: 10s}", "10s", "15s"),
        ("policy: {gang.leaderSilence: 15s}", "15s", "15s"),
        ("controller: {lease: {duration: 90s}}", "1m", "1m30s"),
    ],
)
def test_a_leader_is_not_silent_before_its_lease_is_over(
    tmp_path: Path, text: str, silence: str, lease: str
) -> None:
    """Sections that are sound one by one are judged together, and both are named."""
    (problem,) = _problems(tmp_path, text)
    assert problem == (
        f"policy.gang.leaderSilence: {silence} is not longer than controller.lease.duration"
        f" ({lease}), so each change of the leader would free gangs"
    )
    _load(tmp_path, "policy: {gang.leaderSilence: 16s}")


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """Nobody has to run it again for each."""
    problems = _problems(tmp_path, "webhook: {mode: x, narrow: y}\nstore: {url: 1}")
    assert [problem.split(":")[0] for problem in problems] == [
        "webhook.mode",
        "webhook.narrow",
        "store.url",
    ]


def test_an_unknown_variable_is_refused() -> None:
    """A slip in a variable's name does not vanish."""
    with pytest.raises(ConfigError, match="did you mean SUREFOOT_WEBHOOK__MODE"):
        load.load(None, {"SUREFOOT_WEBHOOK__MOD": "enforce"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("webhook: [", "not YAML"),
        ("- a\n- b", "must be a mapping"),
        ("a: !!python/object:os.system {}", "not YAML"),
        (f"policy: {{entryPolls: {'9' * 5000}}}", "(line 1): not YAML: '99999999999999999999' is no whole number"),
        (f"webhook: {{narrow: 0x{'f' * 5000}}}", "(line 1): not YAML: '0xffffffffffffffffff' is no whole number"),
        (f"apiVersion: {'9' * 4000}", "(line 1): not YAML: '99999999999999999999' is no whole number"),
        (f"policy: {{entryPolls: '{'9' * 4000}'}}", "larger than any setting allows"),
        ("a: 2026-13-45", "month must be in 1..12"),
        ("[" * 5000, "nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_no_configuration_is_said_to_be_none(tmp_path: Path, text: str, told: str) -> None:
    """Broken files end in a sentence, with the line where there is one."""
    (problem,) = _problems(tmp_path, text)
    assert told in problem


def test_a_missing_file_and_a_huge_one_are_refused(tmp_path: Path) -> None:
    """Neither ends in a traceback."""
    with pytest.raises(ConfigError, match="No such file"):
        load.load(tmp_path / "none.yaml", {})
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * (reading.LARGEST_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        load.load(huge, {})
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ConfigError, match="not YAML"):
        load.load(binary, {})


def test_what_check_config_prints_is_itself_a_configuration(tmp_path: Path) -> None:
    """The effective configuration loads again to the same values."""
    config = _load(tmp_path, "policy: {gang.suspect: true, staleAfter: 1m1s500ms}")
    whole = yaml.safe_dump(config.model_dump(mode="json", by_alias=True))
    assert _load(tmp_path, whole) == config


@given(ms=st.integers(0, 10**9))
def test_a_duration_that_is_shown_reads_back_as_itself(ms: int) -> None:
    """`show` and `parse_s` are inverse to the millisecond."""
    assert durations.parse_s(durations.show(ms / 1000)) == pytest.approx(ms / 1000)


@pytest.mark.parametrize("text", ["", "5", "-3s", "1s junk", "s", "1d", "99999999999h", "1e3s"])
def test_what_is_no_go_duration_is_refused(text: str) -> None:
    """Only Go's own form is taken, within ten years."""
    with pytest.raises(ValueError, match=r"duration|longer"):
        durations.parse_s(text)


def test_a_site_may_change_what_a_code_means(tmp_path: Path) -> None:
    """XID rules are part of the configuration, and nonsense in them is told."""
    config = _load(tmp_path, "xid: {xid.63: DEGRADED, xid.94: RECORD}")
    assert load.rules_of(config).has("xid.63")
    (problem,) = _problems(tmp_path, "xid: {xid.63: SOMETHING}")
    assert problem.startswith("xid: xid.63:")


EVERYWHERE = """\
webhook: {mode: x}
policy: {gang.suspect: 1, gang: {suspect: false}, entryPols: 3, cleanPolls: 0, staleAfter: 900s}
xid: {xid.0: RECORD, xid.63: SOMETHING}
store: {url: redis://cache}
webhook: {narrow: -1}
"""


def test_mistakes_of_every_kind_are_told_beside_each_other(tmp_path: Path) -> None:
    """Keys that stand twice, the policy's bounds and contradictions, XID rules and variables: none
    hides another.
    """
    problems = _problems(tmp_path, EVERYWHERE, SUREFOOT_WEBHOOK__MOOD="good")
    told = [problem.removeprefix(f"{tmp_path}/") for problem in problems]
    assert [each.partition(", ")[0] for each in told] == [
        "surefoot.yaml: line 5: key 'webhook' stands twice",
        "policy.gang.suspect: is given twice",
        "SUREFOOT_WEBHOOK__MOOD: no such setting",
        "webhook.narrow: -1 is not allowed",
        "xid: xid.0: is not a code; write xid.N or sxid.N",
        "xid: xid.63: SOMETHING is not one of RECORD",
        "policy.entryPols: no such field",
        "policy.cleanPolls: 0 is out of range",
        "policy.unknownAfter: must not be shorter than staleAfter",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("webhook: {schedulerNames: one}", "webhook.schedulerNames: 'one' is not allowed, allowed is a list of texts"),
        ("webhook: {narrow: many}", "webhook.narrow: 'many' is not allowed, allowed is a whole number"),
        ("webhook: {narrow: 1.5}", "webhook.narrow: 1.5 is not allowed, allowed is a whole number"),
        ("webhook: {narrow: 999999}", "webhook.narrow: 999999 is not allowed, allowed is 100000 or less"),
        ("webhook: 3", "webhook: 3 is not allowed, allowed is a mapping"),
        ("store: {url: [x]}", "store.url: a list is not allowed, allowed is a text"),
        ("store: {sentinel: {hosts: [], service: a}}", "store.sentinel.hosts: a list is not allowed, allowed is a list of 1 or more"),
        ("store: {sentinel: {hosts: ['a:1'], service: ''}}", "store.sentinel.service: '' is not allowed, allowed is a text that is not empty"),
        ("xid: [1]", "xid: a list is not allowed, allowed is a mapping"),
        ("policy: [1]", "policy: a list is not allowed, allowed is a mapping"),
        ("policy: {gang.suspect: maybe}", "policy.gang.suspect: 'maybe' is not allowed, allowed is true or false"),
        ("policy: {rank.health: much}", "policy.rank.health: 'much' is not allowed, allowed is a number"),
        ("policy: {blockingCauses: [1]}", "policy.blockingCauses.0: 1 is not allowed, allowed is a text"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_told_in_plain_words(tmp_path: Path, text: str, told: str) -> None:
    """What is allowed, in words of people and not of a library."""
    assert _problems(tmp_path, text) == [told]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://u:secret@cache:1/2", "redis://u:***@cache:1/2"),
        ("redis://:sec@ret@cache", "redis://:***@cache"),
        ("rediss://cache/0?password=secret&db=1", "rediss://cache/0?password=***&db=1"),
        ("unix://u:secret@/run/cache.sock", "unix://u:***@/run/cache.sock"),
        ("redis://u@[::1]:6379/0?client_name=a@b", "redis://u@[::1]:6379/0?client_name=a@b"),
        ("redis://cache:6379/0", "redis://cache:6379/0"),
    ],
)
def test_a_password_is_used_and_never_printed(tmp_path: Path, url: str, shown: str) -> None:
    """A printed configuration may be pasted into an issue."""
    config = _load(tmp_path, f"store: {{url: '{url}'}}")
    assert config.store.url == url
    assert config.model_dump(mode="json", by_alias=True)["store"]["url"] == shown
