"""The command line as a whole: what it imports, how it helps, how it fails."""

import importlib
import os
import pty
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon_process import FLIGHTREC, flightrec
from flightrec import __version__, commands
from flightrec.commands import COMMANDS, dispatch, guarded, load
from flightrec.errors import ExitCode, FlightrecError, NoDaemonError
from flightrec.paths import find_paths

PRINT_MODULES = "import sys; print(*sorted(sys.modules))"


def python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_the_version_costs_no_import_but_its_own() -> None:
    bare = set(python(PRINT_MODULES).split())
    code = f"from flightrec.main import main; main(['--version']); {PRINT_MODULES}"
    loaded = set(python(code).split()[2:])
    assert loaded - bare == {"flightrec", "flightrec.main"}


def test_the_version_is_there_hardly_later_than_python_itself() -> None:
    """The bar is 1.5 times a bare ``python -c pass``; here with threefold slack."""

    def time_of(*words: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started

    pairs = [(time_of("-c", "pass"), time_of("-m", "flightrec", "--version")) for _ in range(15)]
    assert statistics.median(b for _, b in pairs) < 4.5 * statistics.median(a for a, _ in pairs)


def test_the_version_is_that_of_the_package() -> None:
    assert flightrec("--version", home=Path("/nonexistent")).stdout == f"flightrec {__version__}\n"


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_names_every_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(words) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in COMMANDS)


def test_help_imports_no_command() -> None:
    code = f"from flightrec.main import main; main([]); {PRINT_MODULES}"
    assert "flightrec.commands.log" not in python(code).split()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_line_and_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = load(name)
    assert COMMANDS[name] == command.HELP
    assert command.EXAMPLES
    assert all("flightrec" in line for line, _ in command.EXAMPLES)
    assert dispatch(["help", name]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: flightrec {name}")
    assert all(line in shown for line, _ in command.EXAMPLES)


def test_every_module_of_a_command_is_listed() -> None:
    folder = Path(commands.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if hasattr(_load(path.stem), "EXAMPLES")}
    assert modules == set(COMMANDS)


def _load(name: str) -> object:
    return importlib.import_module(f"flightrec.commands.{name}")


def test_an_unknown_command_is_a_usage_error_with_a_proposal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dispatch(["forgte"]) == ExitCode.USAGE
    assert "did you mean forget?" in capsys.readouterr().err


def test_a_wrong_argument_is_a_usage_error(home: Path) -> None:
    done = flightrec("log", "--nonsense", home=home)
    assert done.returncode == ExitCode.USAGE
    assert "unrecognized arguments" in done.stderr


def test_an_argument_that_is_no_utf_8_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dispatch(["forget", "\udcff"]) == ExitCode.USAGE
    assert "UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FlightrecError("do this"), ExitCode.TROUBLE),
        (FlightrecError("do this", ExitCode.USAGE), ExitCode.USAGE),
        (NoDaemonError("do this"), ExitCode.NO_DAEMON),
    ],
)
def test_trouble_is_one_line_and_its_exit_status(
    error: Exception, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(raising(error)) == status
    assert capsys.readouterr().err == "flightrec: do this\n"


def raising(error: BaseException) -> Callable[[], int]:
    def action() -> int:
        raise error

    return action


def test_control_c_is_130_and_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr() == ("", "")


def test_control_c_ends_a_command_that_waits_for_an_answer(home: Path) -> None:
    (home / ".bashrc").touch()
    process = subprocess.Popen(
        [*FLIGHTREC, "install"],
        env={**os.environ, "HOME": str(home)},
        stdin=_terminal(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    while b"Add it?" not in process.stdout.readline() + process.stdout.peek()[:200]:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")
    assert (home / ".bashrc").read_bytes() == b""


def _terminal() -> int:
    return pty.openpty()[1]


def test_a_reader_that_has_enough_is_no_trouble(home: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{' '.join(FLIGHTREC)} --help | true; exit ${{PIPESTATUS[0]}}"],
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_bug_is_logged_without_a_word_of_what_was_handled(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """T19: an error's text may quote what it could not handle."""
    state = find_paths(str(home)).state
    state.mkdir(parents=True)
    assert guarded(raising(ValueError("hunter2"))) == ExitCode.BUG
    line = capsys.readouterr().err
    log = (state / "cli.log").read_text()
    assert line.count("\n") == 1
    assert str(state / "cli.log") in line
    assert "ValueError" in log
    assert "test_main.py" in log
    assert "hunter2" not in log + line
    assert (state / "cli.log").stat().st_mode & 0o077 == 0


def test_a_bug_without_a_home_is_still_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", "")
    assert guarded(raising(ValueError("x"))) == ExitCode.BUG
    assert capsys.readouterr().err == "flightrec: a bug (ValueError), and no log could be written\n"


@pytest.mark.parametrize("home_variable", ["", "relative", "/" + "x" * 120])
def test_a_home_that_cannot_be_used_is_said_so(
    home_variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", home_variable)
    assert dispatch(["log"]) == ExitCode.TROUBLE
    err = capsys.readouterr().err
    assert "HOME" in err
    assert err.count("\n") == 1


def test_a_terminal_without_unicode_gets_escapes(home: Path) -> None:
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = flightrec("rules", "show", "no→rule", home=home, env=env)
    assert done.returncode == ExitCode.TROUBLE
    assert "no rule no\\u2192rule" in done.stderr
