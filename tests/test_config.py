"""Settings: what is not said has a default, what is wrong is named in one line."""

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon_process import DaemonProcess, flightrec, wait_until
from fake_relay import finished
from flightrec import hint_desk
from flightrec.config import (
    Ignore,
    IgnoreFilter,
    Level,
    Redaction,
    Settings,
    load_settings,
    parse_settings,
)
from flightrec.errors import FlightrecError
from flightrec.paths import find_paths
from flightrec.wire import TailSource, Verdict

DOCUMENTED = Path(__file__).parent.parent / "docs/settings.toml"

FULL = """
[capture]
level = "commands"
[ignore]
commands = ["vault *"]
directories = ["~/private"]
[redaction]
allow = ["^not-a-secret$"]
deny = ["corp-[0-9]+"]
[rules]
promote_recurrences = 3
promote_confirmations = 4
archive_contradictions = 2
share_projects = 5
[hints]
enabled = true
hold = true
repeat_after_minutes = 90
[export]
on_promotion = false
[retention]
megabytes = 100
days = 30
[daemon]
idle_exit_minutes = 5
check_seconds = 2.5
reflect_minutes = 30
"""

MISTAKES = [
    ("[capture]\nlevel = 'all'", "capture.level: 'all' is none of: metadata, commands, evidence"),
    ("[captures]", "unknown key captures"),
    ("[capture]\nlvl = 1", "capture: unknown key lvl"),
    ("capture = 1", "capture: Expected a table, got `int`"),
    ("[rules]\npromote_recurrences = 0", "rules.promote_recurrences: Expected `int` >= 1"),
    ("[ignore]\ncommands = ['ok', 2]", "ignore.commands[1]: Expected `str`, got `int`"),
    ("[redaction]\ndeny = ['(']", "redaction.deny: '(' is no regular expression: missing )"),
    ("[redaction]\ndeny = ['.*a.*b']", "redaction.deny: '.*a.*b' could be slow: two repeats may"),
    ("[redaction]\nallow = ['x*']", "redaction.allow: 'x*' would match everywhere"),
    ("[daemon]\nidle_exit_minutes = 'soon'", "daemon.idle_exit_minutes: Expected `float`"),
    ("[retention]\nmegabytes = 1", "retention.megabytes: Expected `int` >= 10"),
    ("no toml", "is no TOML: "),
]


def test_an_empty_file_says_what_no_file_says(tmp_path: Path) -> None:
    assert parse_settings("", "x") == Settings() == load_settings(tmp_path / "missing.toml")


def test_all_that_can_be_said_is_understood() -> None:
    settings = parse_settings(FULL, "config.toml")
    assert settings.capture.level is Level.COMMANDS
    assert settings.rules.promote_recurrences == 3
    assert settings.hints.repeat_after_minutes == 90
    assert settings.hints.hold is True
    assert settings.daemon.check_seconds == 2.5


def test_hold_may_name_rules() -> None:
    settings = parse_settings('[hints]\nhold = ["ERR-20261130-001"]', "config.toml")
    assert settings.hints.hold == ("ERR-20261130-001",)


@pytest.mark.parametrize(("text", "expected"), MISTAKES)
def test_a_mistake_is_one_line_with_the_file_and_the_key(text: str, expected: str) -> None:
    with pytest.raises(FlightrecError) as mistake:
        parse_settings(text, "/h/config.toml")
    line = str(mistake.value)
    assert line.startswith("/h/config.toml")
    assert expected in line
    assert "\n" not in line


@given(st.text(max_size=200))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        parse_settings(text, "x")
    except FlightrecError as error:
        assert "\n" not in str(error)  # noqa: PT017 - any text may be fine, too


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FlightrecError, match="not UTF-8 text"):
        load_settings(tmp_path / "config.toml")
    with pytest.raises(FlightrecError, match="Is a directory"):
        load_settings(tmp_path)


@pytest.mark.parametrize(
    ("command", "cwd", "ignored"),
    [
        ("vault read x", "/", True),
        ("  vault read x ", "/", True),
        ("vaults", "/", False),
        ("echo --token=abc", "/", True),
        ("line one\nmysecret\nthree", "/", True),
        ("ls", "/home/u/private", True),
        ("ls", "/home/u/private/deep/er", True),
        ("ls", "/home/u/privately", False),
        ("ls", "/srv/any/keys", True),
        ("ls", "/", False),
    ],
)
def test_commands_and_directories_are_ignored_by_patterns(
    command: str,
    cwd: str,
    ignored: bool,  # noqa: FBT001 - a table's column
) -> None:
    ignore = Ignore(("vault *", "*--token=*", "*mysecret*"), ("~/private", "/srv/*/keys/"))
    assert IgnoreFilter(ignore, "/home/u").ignores(command, cwd) is ignored


# --- in a daemon ---------------------------------------------------------------------------------


@pytest.fixture
def write_config(home: Path) -> Callable[[str], None]:
    """Replace the settings as an editor does."""

    def write(text: str) -> None:
        config = find_paths(str(home)).config
        config.parent.mkdir(parents=True, exist_ok=True)
        config.with_suffix(".new").write_text(text, encoding="utf-8")
        config.with_suffix(".new").replace(config)

    return write


def test_with_a_mistake_in_the_settings_nothing_is_recorded_until_it_is_mended(
    home: Path, write_config: Callable[[str], None]
) -> None:
    """A typing error must not let through what the person has excluded."""
    write_config("[ignore]\ncommand = ['vault *']")
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        begun, reply = relay.ask("vault read")
        assert reply.verdict is Verdict.PRIVATE
        relay.wait_for_commit(begun.run)  # it need not be kept
        shown = flightrec("status", home=home)
        assert f"nothing: {daemon.paths.config}: ignore: unknown key command" in shown.stdout

        write_config("[daemon]\ncheck_seconds = 0.05\n[ignore]\ncommands = ['vault *']")
        assert daemon.ask("reload") == {"config_error": None}
        relay.wait_for_commit(relay.type("vault write"), relay.type("ls"))
        assert daemon.commands() == ["ls"]

        write_config("[daemon]\ncheck_seconds = 0.05\n[")
        wait_until(lambda: daemon.status()["config_error"])
        relay.wait_for_commit(relay.type("ls again"))
        assert daemon.commands() == ["ls"]


@pytest.mark.parametrize(
    ("level", "command", "tail"),
    [
        ("evidence", "cd /x && make all >log", "make: boom"),
        ("commands", "cd /x && make all >log", ""),
        ("metadata", "cd; make", ""),
    ],
)
def test_the_level_says_how_much_is_kept(
    home: Path, write_config: Callable[[str], None], level: str, command: str, tail: str
) -> None:
    write_config(f"[capture]\nlevel = '{level}'")
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        begun, _ = relay.ask("cd /x && make all >log")
        relay.send(finished(begun, 2, tail=b"make: boom", tail_source=TailSource.STDERR))
        relay.wait_for_commit(begun.run)
        assert daemon.commands() == [command]
        assert daemon.tails() == [tail]
        assert daemon.status()["level"] == level


def test_without_tails_those_of_a_person_s_terminal_are_not_kept(
    home: Path, write_config: Callable[[str], None]
) -> None:
    write_config("[capture]\ntail = false")
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        begun, _ = relay.ask("make all")
        relay.send(finished(begun, 2, tail=b"make: boom", tail_source=TailSource.PANE))
        relay.wait_for_commit(begun.run)
        assert daemon.tails() == [""]


def test_settings_are_followed_by_the_writer_too(
    home: Path, write_config: Callable[[str], None]
) -> None:
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        relay.wait_for_commit(relay.type("git commit -m one"))
        write_config("[capture]\nlevel = 'metadata'")
        daemon.ask("reload")
        relay.wait_for_commit(relay.type("git commit -m two"))
        assert daemon.commands() == ["git commit -m one", "git"]


def test_hints_follow_the_persons_own_patterns_and_keep_what_sessions_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A redactor remembers the secrets of running sessions: it is replaced only where it must."""
    made: list[tuple[Sequence[str], ...]] = []
    monkeypatch.setattr(hint_desk, "Redactor", lambda *patterns: made.append(patterns))
    desk = hint_desk.HintDesk()
    own = Settings(redaction=Redaction(allow=("corp-0",), deny=("corp-[0-9]+",)))
    for settings in (Settings(), own, own):
        desk.use(settings)
    assert made == [(), (("corp-0",), ("corp-[0-9]+",))]


def test_the_documented_settings_are_all_there_are_with_their_defaults() -> None:
    text = DOCUMENTED.read_text()
    names = {
        (table.name, key.name)
        for table in msgspec.structs.fields(Settings)
        for key in msgspec.structs.fields(table.type)
    }

    assert parse_settings(text, "settings.toml") == Settings()
    assert {(table, key) for table, keys in tomllib.loads(text).items() for key in keys} == names
