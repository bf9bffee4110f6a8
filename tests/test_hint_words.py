"""The filter that spares most commands a question: kept by the daemon, read by the helper."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flightrec.hint_words import HintWords
from flightrec.hints import HintRule
from flightrec.paths import find_paths
from flightrec.rules import Remedy, Slot, Trigger
from hint_rules import make_hint_rule
from recording_server import RecordingServer, recording_server
from typed_shell import Rc, ShellMaker
from wire_check import WireCheck

WaitFor = Callable[..., object]


def rule(*words: str | Slot, remedy: Remedy | None = None, offered: bool = True) -> HintRule:
    offer = Remedy("replace", ("git", Slot(0))) if remedy is None else remedy
    trigger = Trigger("command not found", words)
    return make_hint_rule(trigger, offer, offered=offered)


@pytest.fixture
def words(home: Path) -> Iterator[HintWords]:
    find_paths().run.mkdir(parents=True, mode=0o700)
    for folder in (find_paths().state, find_paths().run):
        folder.chmod(0o700)
    assert home.exists()
    kept = HintWords(find_paths().hint_words)
    kept.publish()
    yield kept
    kept.close()


@pytest.fixture
def server(words: HintWords) -> Iterator[RecordingServer]:  # noqa: ARG001 - in the same home
    """A daemon of this process, so that the file is its own."""
    with recording_server() as running:
        running.manners.pid = os.getpid()
        yield running


@pytest.fixture
def asked(
    server: RecordingServer, home: Path, wait_for: WaitFor
) -> Iterator[Callable[[str], bool]]:
    """``asked(line)`` is whether the relay asked the daemon about a line typed into a shell."""
    maker = ShellMaker(home)
    shell = maker("bash", Rc())
    shell.type("echo the first one is asked about: no hello has come before it")
    wait_for(lambda: server.finished, what="the first command")

    def ask(line: str) -> bool:
        shell.type(line)
        wait_for(lambda: line in server.commands and server.runs[-1].finished, what=line)
        return server.runs[-1].starting.wants_reply

    yield ask
    maker.close()


def test_the_file_is_private_and_names_its_daemon(words: HintWords) -> None:
    path = find_paths().hint_words
    words.add([rule("gti")])
    data = path.read_bytes()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert data[:16] == b"frwords1" + os.getpid().to_bytes(4, "little") + b"\0" * 4
    assert len(data) == 16 + 8192
    assert b"gti" not in data


def test_only_commands_with_a_word_of_a_rule_are_asked_about(
    words: HintWords, asked: Callable[[str], bool]
) -> None:
    assert not asked("true gti")
    words.add([rule("gti"), rule("never", offered=False), rule("./run it")])

    assert asked("gti status || true")
    assert asked("true && FOO=1 gti st; true")
    assert asked("(gti); true")
    assert asked("'gti' x || true")
    assert asked("git --version >/dev/null || true")  # what is offered, to see it followed
    assert asked("'./run it' || true")
    assert not asked("true gt")
    assert not asked("true never")


def test_a_rule_that_starts_from_anything_has_everything_asked_about(
    words: HintWords, asked: Callable[[str], bool]
) -> None:
    words.add([rule(Slot(0), "install")])

    assert asked("true")


def test_forgotten_rules_are_asked_about_no_more(
    words: HintWords, asked: Callable[[str], bool]
) -> None:
    words.add([rule("gti")])
    assert asked("true gti")
    words.clear()
    assert not asked("true gti")
    words.add([rule("sl")])

    assert asked("true sl")


@pytest.mark.parametrize("trouble", ["gone", "another's", "cut", "no filter"])
def test_where_the_file_tells_nothing_everything_is_asked_about(
    trouble: str, words: HintWords, asked: Callable[[str], bool]
) -> None:
    path = find_paths().hint_words
    assert not asked("true before")
    data = path.read_bytes()
    if trouble == "gone":
        words.close()
        path.write_bytes(b"")
    elif trouble == "another's":
        path.write_bytes(data[:8] + (1).to_bytes(4, "little") + data[12:])
    elif trouble == "cut":
        path.write_bytes(data[:100])
    else:
        path.write_bytes(b"x" * len(data))

    assert asked("true after")


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    kept = HintWords(tmp_path / "missing" / "x.words")
    kept.publish()
    kept.add([rule("gti")])
    kept.clear()
    kept.close()


@pytest.fixture(scope="module")
def wire_check() -> Iterator[WireCheck]:
    check = WireCheck()
    yield check
    assert check.close() == 0, "a sanitizer complained"


lines = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40)


@settings(max_examples=100, deadline=None)
@given(word=st.text(st.sampled_from("ab/.-_$ '\"\\;é"), min_size=1, max_size=8), before=lines)
def test_no_word_of_a_rule_is_missed_in_a_line_that_has_it(
    word: str, before: str, wire_check: WireCheck, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "x.words"
    kept = HintWords(path)
    kept.publish()
    kept.add([rule(word)])
    line = f"{before} {word} x"
    asked = f"filter x{os.fsencode(path).hex()} {os.getpid()} x{line.encode().hex()}"
    answer = wire_check.ask(asked)
    kept.close()

    assert answer == "ask"
