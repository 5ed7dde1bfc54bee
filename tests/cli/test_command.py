"""The `surefoot` command as a whole: help, version, configuration, and `serve`'s own words."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from commands import Surefoot

from extender import wiring
from extender.cli import COMMANDS
from extender.config.model import SurefootConfig
from extender.version import VERSION

GOOD = """\
apiVersion: surefoot.dev/v1alpha1
kind: SurefootConfig
webhook: {mode: enforce, maxSnapshotAge: 90s}
policy: {gang.suspect: true}
"""


@pytest.fixture
def surefoot(offline: Surefoot) -> Surefoot:
    """None of this needs a cache."""
    return offline


class TestHelp:
    """Habits of kubectl."""

    def test_the_command_lists_its_subcommands(self, surefoot: Surefoot) -> None:
        """One line of help for each."""
        told = surefoot("--help").stdout
        assert surefoot("-h").stdout == told
        assert all(f"\n  {name} " in told for name in COMMANDS)
        assert "..." not in told.partition("Commands:")[2]

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_subcommand_has_help(self, surefoot: Surefoot, name: str) -> None:
        """With a first sentence and an example."""
        told = surefoot(name, "--help")
        assert told.exit_code == 0
        assert told.stdout.startswith(f"Usage: surefoot {name}")
        assert f"surefoot {name}" in told.stdout.partition("Example:")[2]

    def test_the_version_is_told(self, surefoot: Surefoot) -> None:
        """As `surefoot, version X`."""
        assert surefoot("--version").stdout == f"surefoot, version {VERSION}\n"

    @pytest.mark.parametrize("words", [["sreve"], ["get", "pods"], ["serve", "--prot", "1"]])
    def test_an_unknown_word_is_exit_code_2(self, surefoot: Surefoot, words: list[str]) -> None:
        """With usage on standard error."""
        result = surefoot(*words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert words[0] in result.stderr or words[1] in result.stderr


class TestProcess:
    """`python -m extender` is the command too."""

    def test_it_runs_as_a_module(self, surefoot: Surefoot) -> None:
        """With the same output and exit codes."""
        running = surefoot.process("--version")
        assert running.communicate(timeout=20) == (f"surefoot, version {VERSION}\n", "")
        wrong = surefoot.process("inspect", "kmsg", "-", "--json")
        told, errors = wrong.communicate("no log", timeout=20)
        assert (wrong.returncode, told) == (3, "")
        assert "Traceback" not in errors

    def test_inspect_waits_for_neither_flask_nor_redis(self) -> None:
        """It runs on nodes, by hand, and in a hurry."""
        code = (
            "import sys; from extender.cli import main\n"
            "try: main(['inspect', 'kmsg', '/dev/null'])\n"
            "except SystemExit: pass\n"
            "print(sorted({'flask', 'gunicorn', 'redis'} & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True
        )
        assert done.stdout == "[]\n"

    def test_a_reader_that_stops_reading_is_no_traceback(self, surefoot: Surefoot) -> None:
        """As `surefoot ... | head -1` does."""
        running = surefoot.process("check-config", "/dev/null")
        assert running.stdout is not None
        running.stdout.close()
        running.stdout = None
        _, errors = running.communicate(timeout=20)
        assert "Traceback" not in errors


class TestCheckConfig:
    """`surefoot check-config` says whether a file is sound, and what it comes to."""

    def test_a_sound_file_is_printed_with_every_default(
        self, surefoot: Surefoot, tmp_path: Path
    ) -> None:
        """What is printed is a sound file that means the same."""
        file = tmp_path / "surefoot.yaml"
        file.write_text(GOOD)
        first = surefoot("check-config", str(file))
        assert (first.exit_code, first.stderr) == (0, "")
        whole = yaml.safe_load(first.stdout)
        assert (whole["webhook"]["mode"], whole["webhook"]["narrow"]) == ("enforce", 32)
        assert whole["webhook"]["maxSnapshotAge"] == "1m30s"
        assert whole["policy"]["gang"]["suspect"] is True
        file.write_text(first.stdout)
        assert surefoot("check-config", str(file)).stdout == first.stdout
        assert surefoot("check-config", "-q", str(file)).stdout == ""

    def test_each_mistake_is_a_line_with_its_path(self, surefoot: Surefoot, tmp_path: Path) -> None:
        """Exit code 2, all mistakes at once, with what was meant."""
        file = tmp_path / "surefoot.yaml"
        file.write_text("webhook: {mode: enforced, narow: 3, bind: nowhere}\nstore: {url: 'x'}\n")
        result = surefoot("check-config", str(file), STORE__URL="")
        assert (result.exit_code, result.stdout) == (2, "")
        lines = result.stderr.splitlines()
        assert len(lines) == 4
        assert any("webhook.mode" in line and "did you mean enforce?" in line for line in lines)
        assert any("webhook.narow" in line and "did you mean narrow?" in line for line in lines)
        assert all(line.startswith("error: ") for line in lines)

    def test_a_wrong_variable_is_named(self, surefoot: Surefoot, tmp_path: Path) -> None:
        """The environment counts too."""
        file = tmp_path / "surefoot.yaml"
        file.write_text(GOOD)
        result = surefoot("check-config", str(file), WEBHOOK__MOOD="good")
        assert (result.exit_code, "SUREFOOT_WEBHOOK__MOOD" in result.stderr) == (2, True)

    def test_a_dash_is_standard_input(self, surefoot: Surefoot) -> None:
        """As for every other file."""
        good = surefoot("check-config", "-", stdin=GOOD)
        assert (good.exit_code, yaml.safe_load(good.stdout)["webhook"]["mode"]) == (0, "enforce")
        bad = surefoot("check-config", "-", stdin="webhook: {narow: 3}")
        assert (bad.exit_code, "webhook.narow: no such field" in bad.stderr) == (2, True)
        broken = surefoot("check-config", "-", stdin="a: [")
        assert broken.stderr.startswith("error: - (line 1): not YAML: ")

    def test_a_password_is_not_printed(self, surefoot: Surefoot) -> None:
        """What is printed is pasted into issues."""
        told = surefoot("check-config", "-", stdin="", STORE__URL="redis://u:secret@cache/1")
        assert told.exit_code == 0
        assert "secret" not in told.stdout
        assert "redis://u:***@cache/1" in told.stdout

    def test_a_file_that_is_not_there_is_usage(self, surefoot: Surefoot) -> None:
        """Exit code 2, with its name."""
        result = surefoot("check-config", "nowhere.yaml")
        assert (result.exit_code, "nowhere.yaml" in result.stderr) == (2, True)


class TestServe:
    """What `surefoot serve` makes of its words; that it serves is proved in tests/webhook."""

    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> list[SurefootConfig]:
        """The configurations with which a server would have started."""
        found: list[SurefootConfig] = []
        monkeypatch.setattr(wiring, "serve", found.append)
        return found

    def test_words_beat_variables_and_variables_beat_the_file(
        self, surefoot: Surefoot, tmp_path: Path, started: list[SurefootConfig]
    ) -> None:
        """From the nearest to the farthest."""
        file = tmp_path / "surefoot.yaml"
        file.write_text(GOOD)
        result = surefoot(
            "serve", "--bind", ":9000", "--store", "redis://cache:1/2", "--config", str(file),
            WEBHOOK__BIND="127.0.0.1:1", WEBHOOK__MAX_SNAPSHOT_AGE="5s",
        )  # fmt: skip
        assert result.exit_code == 0
        (config,) = started
        assert (config.webhook.bind, config.store.url) == (":9000", "redis://cache:1/2")
        assert (config.webhook.max_snapshot_age, config.webhook.mode.value) == (5.0, "enforce")

    def test_the_file_may_be_named_by_a_variable(
        self, surefoot: Surefoot, tmp_path: Path, started: list[SurefootConfig]
    ) -> None:
        """As a container would have it."""
        file = tmp_path / "surefoot.yaml"
        file.write_text(GOOD)
        assert surefoot("serve", CONFIG=str(file)).exit_code == 0
        assert started[0].webhook.mode.value == "enforce"

    def test_a_port_in_use_is_one_sentence_at_once(self, surefoot: Surefoot) -> None:
        """Exit code 1, before a thread or a worker is started."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            running = surefoot.process("serve", "--bind", address)
            told, errors = running.communicate(timeout=20)
        assert (running.returncode, told) == (1, "")
        assert errors == f"error: cannot listen on {address}: Address already in use\n"

    @pytest.mark.parametrize("bind", ["nowhere", "127.0.0.1", "127.0.0.1:99999", "a b:1"])
    def test_a_wrong_address_is_told_before_anything_starts(
        self, surefoot: Surefoot, started: list[SurefootConfig], bind: str
    ) -> None:
        """Exit code 2, with how to write one."""
        result = surefoot("serve", "--bind", bind)
        assert (result.exit_code, started) == (2, [])
        assert "webhook.bind" in result.stderr
