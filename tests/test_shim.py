"""What the stand-ins for shells and tools tell the daemon about what an agent starts."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from agent_stage import PATIENCE_S, Stage, only, open_stage
from flightrec.unwrap import OUTER_PREFIXES, SILENT_PREFIXES
from flightrec.wire import PROTOCOL, Hello, Source, TailSource, encode
from recording_server import RecordingServer, Run, recording_server

WaitFor = Callable[..., object]


@pytest.fixture
def server(home: Path) -> Iterator[RecordingServer]:
    with recording_server() as server:
        yield server


@pytest.fixture
def stage(home: Path, server: RecordingServer) -> Iterator[Stage]:
    with open_stage(home) as stage:
        yield stage


class Stand:
    """Runs something on the stage and returns what the server heard of it."""

    def __init__(self, stage: Stage, server: RecordingServer) -> None:
        self.stage, self.server = stage, server

    def runs(
        self,
        words: Sequence[str],
        environment: dict[str, str] | None = None,
        stdin: bytes = b"",
    ) -> list[Run]:
        """All messages have been sent when the program ends; the fence says that they are read."""
        before = set(self.server.by_id)
        self.stage.run(words, environment, stdin)
        self.fence()
        return [run for run_id, run in self.server.by_id.items() if run_id not in before]

    def fence(self) -> None:
        """Return when the server has read all that was sent before."""
        for _ in range(3):  # accepted, read, handled
            with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
                connection.connect(str(self.server.path))
                connection.sendall(encode(Hello(PROTOCOL, b"test", b"fence")))
                connection.recv(1)


@pytest.fixture
def stand(stage: Stage, server: RecordingServer) -> Stand:
    return Stand(stage, server)


# --- doors -----------------------------------------------------------------------------------

STATSU = "git statsu"

LAUNCHERS: dict[str, tuple[list[str], bytes]] = {
    "bash -c": (["bash", "-c", STATSU], b""),
    "bash -lc": (["bash", "-lc", STATSU], b""),
    "bash -eo pipefail -c": (["bash", "-eo", "pipefail", "-c", STATSU], b""),
    "bash --norc --noprofile -c": (["bash", "--norc", "--noprofile", "-c", STATSU], b""),
    "/bin/bash -c": (["/bin/bash", "-c", STATSU], b""),
    "/bin/bash -c -l": (["/bin/bash", "-c", "-l", STATSU], b""),
    "/bin/bash -lc": (["/bin/bash", "-lc", STATSU], b""),
    "/bin/bash --posix -c": (["/bin/bash", "--posix", "-c", STATSU], b""),
    "sh -c": (["sh", "-c", STATSU], b""),
    "/bin/sh -c": (["/bin/sh", "-c", STATSU], b""),
    "dash -c": (["dash", "-c", STATSU], b""),
    "zsh -c": (["zsh", "-c", STATSU], b""),
    "zsh -lc": (["zsh", "-lc", STATSU], b""),
    "/bin/zsh -c": (["/bin/zsh", "-c", STATSU], b""),
    "/bin/zsh -lc": (["/bin/zsh", "-lc", STATSU], b""),
    "/bin/zsh -fc": (["/bin/zsh", "-fc", STATSU], b""),
    "$SHELL -c": (["$SHELL", "-c", STATSU], b""),
    "$SHELL -lc": (["$SHELL", "-lc", STATSU], b""),
    "$SHELL -ic": (["$SHELL", "-ic", STATSU], b""),
    "git (no shell)": (["git", "statsu"], b""),
    "env git": (["env", "git", "statsu"], b""),
    "env -i git": (["env", "-i", "PATH=/usr/bin:/bin", "git", "statsu"], b""),
    "/usr/bin/git": (["/usr/bin/git", "statsu"], b""),
    "bash <": (["bash"], b"git statsu\n"),
    "/bin/bash <": (["/bin/bash"], b"git statsu\n"),
    "/bin/bash script": (["/bin/bash", "script"], b""),
    "/bin/sh -c | tail": (["/bin/sh", "-c", "git statsu 2>&1 | tail -n 1"], b""),
}

DOORS = (
    ("PATH",),
    ("BASH_ENV",),
    ("ZDOTDIR",),
    ("SHELL",),
    ("PATH", "BASH_ENV", "ZDOTDIR", "SHELL"),
)

LETTERS = {Source.SH: "S", Source.ENV: "E", Source.SHIM: "X"}

TABLE = """
launcher | PATH | BASH_ENV | ZDOTDIR | SHELL | all
bash -c | S+X | S | - | - | S+X
bash -lc | S | E+X | - | - | S+X
bash -eo pipefail -c | S+X | S | - | - | S+X
bash --norc --noprofile -c | S+X | S | - | - | S+X
/bin/bash -c | X | S | - | - | S+X
/bin/bash -c -l | - | E+X | - | - | E+X
/bin/bash -lc | - | E+X | - | - | E+X
/bin/bash --posix -c | X | - | - | - | X
sh -c | S+X | - | - | - | S+X
/bin/sh -c | X | - | - | - | X
dash -c | S+X | - | - | - | S+X
zsh -c | S+X | - | S | - | S+X
zsh -lc | S | - | S+X | - | S+X
/bin/zsh -c | X | - | S | - | S+X
/bin/zsh -lc | X | - | S+X | - | S+X
/bin/zsh -fc | X | - | - | - | X
$SHELL -c | X | S | - | S | S+X
$SHELL -lc | - | E+X | - | S | S+X
$SHELL -ic | X | - | - | S | S+X
git (no shell) | X | - | - | - | X
env git | X | - | - | - | X
env -i git | - | - | - | - | -
/usr/bin/git | - | - | - | - | -
bash < | X | E | - | - | X
/bin/bash < | X | E | - | - | X
/bin/bash script | X | - | - | - | X
/bin/sh -c | tail | X | - | - | - | X
"""
"""Who reports ``git statsu``: S a stand-in for the shell, E a shell's own script, X the tool's
stand-in, +X the tool's as a part of the command."""


def test_each_door_catches_what_the_table_says(stand: Stand) -> None:
    (stand.stage.folder / "script").write_text("git statsu\n")
    lines = ["launcher | PATH | BASH_ENV | ZDOTDIR | SHELL | all"]
    for launcher, (words, stdin) in LAUNCHERS.items():
        cells = [launcher]
        for doors in DOORS:
            environment = only(stand.stage, *doors)
            started = [environment["SHELL"] if word == "$SHELL" else word for word in words]
            cells.append(_cell(stand.runs(started, environment, stdin)))
        lines.append(" | ".join(cells))

    assert "\n".join(lines) == TABLE.strip()


def _cell(runs: list[Run]) -> str:
    """Return who reported the failure, parts of a command after it; every status is checked."""
    assert all(run.exit == 1 or "tail" in run.command for run in runs)
    commands = [run for run in runs if run.starting.parent is None]
    known = {run.starting.run for run in commands}
    assert all(run.starting.parent in known for run in runs if run not in commands)
    parts = [run for run in runs if run not in commands]
    letters = [LETTERS[run.starting.source] for run in commands]
    return " ".join(letters) + "".join(f"+{LETTERS[run.starting.source]}" for run in parts) or "-"


# --- what is told of a command -----------------------------------------------------------------


def only_command(runs: list[Run]) -> Run:
    """Return the one run that is no part of another."""
    (command,) = [run for run in runs if run.starting.parent is None]
    return command


def test_a_command_is_told_with_text_place_end_and_last_words(stand: Stand) -> None:
    text = "cd sub && echo out && git statsu"

    run = only_command(stand.runs(["bash", "-c", text, "zero", "one"]))

    assert run.starting.command == text.encode()
    assert run.starting.command_total == len(text)
    assert run.starting.cwd == os.fsencode(stand.stage.folder)
    assert run.starting.shell == b"bash"
    assert run.starting.agent == b"stage"
    assert run.starting.session == stand.stage.session.id
    assert run.starting.path == stand.stage.plain["PATH"].encode()
    assert run.starting.boot
    assert run.finished is not None
    assert run.finished.exit == 1
    assert run.finished.signal is None
    assert run.finished.usec is not None
    assert 0 < run.finished.usec < 10_000_000
    assert run.finished.tail_source is TailSource.MERGED
    assert run.finished.tail.startswith(b"out\ngit: 'statsu' is not a git command")
    assert run.finished.tail_total == len(run.finished.tail)


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "/bin/zsh"])
@pytest.mark.parametrize(
    ("text", "status", "number"),
    [
        ("exit 7", 7, None),
        ("exec git statsu", 1, None),
        ("trap 'true' EXIT; exit 3", 3, None),
        ("kill -9 $$", 137, signal.SIGKILL),
        ("exec sh -c 'kill -TERM $$'", 143, signal.SIGTERM),
        ("set -e; false; true", 1, None),
        ("nosuchprogram", 127, None),
        ("./sub", 126, None),
        ("git statsu || true", 0, None),
    ],
)
def test_the_true_end_is_told(
    stand: Stand, shell: str, text: str, status: int, number: int | None
) -> None:
    run = only_command(stand.runs([shell, "-c", text]))

    assert run.finished is not None
    assert (run.finished.exit, run.finished.signal) == (status, number)


def test_a_time_limit_is_no_success(stand: Stand) -> None:
    for words in (
        ["timeout", "0.3", "bash", "-c", "true; sleep 9"],
        ["timeout", "0.3", "/bin/bash", "-c", "true; sleep 9"],
        ["timeout", "0.3", "/bin/zsh", "-c", "true; sleep 9"],
        ["timeout", "0.3", "bash", "-lc", "true; sleep 9"],
    ):
        assert only_command(stand.runs(words)).exit == 143, words


@pytest.mark.parametrize(
    "text",
    [
        "true; sleep 9",
        "(sleep 9)",
        "true; sleep 9 | cat",
        "while :; do :; done",
        "f() { sleep 9; }; f",
    ],
)
def test_a_time_limit_of_a_login_bash_by_full_path_is_unknown(stand: Stand, text: str) -> None:
    run = only_command(stand.runs(["timeout", "0.3", "/bin/bash", "-lc", text]))

    assert run.starting.source is Source.ENV
    assert run.exit is None


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("true", 0),
        ("git statsu", 1),
        ("exit 4", 4),
        ("f() { exit 5; }; f", 5),
        ("set -e; false; true", 1),
        ("sleep 0.5 >/dev/null 2>&1 & true", 0),
        ("nosuchprogram", 127),
        ("if", 2),
    ],
)
def test_a_login_bash_by_full_path_tells_its_end(stand: Stand, text: str, status: int) -> None:
    run = only_command(stand.runs(["/bin/bash", "-lc", text]))

    assert run.starting.source is Source.ENV
    assert run.exit == status


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "zsh", "/bin/zsh"])
def test_statuses_of_a_pipeline_come_from_the_shell(stand: Stand, shell: str) -> None:
    run = only_command(stand.runs([shell, "-c", "(exit 3) | true | (exit 2)"]))

    assert run.finished is not None
    assert run.finished.pipestatus == [3, 0, 2]


def test_statuses_of_an_earlier_pipeline_are_not_believed(stand: Stand) -> None:
    run = only_command(stand.runs(["bash", "-c", "false | true; exit 9"]))

    assert run.finished is not None
    assert run.finished.pipestatus == []


def test_a_hidden_failure_is_seen_through_every_shell(stand: Stand) -> None:
    for shell in ("bash", "/bin/bash", "sh", "/bin/sh", "zsh", "/bin/zsh"):
        runs = stand.runs([shell, "-c", "git statsu 2>&1 | tail -n 1"])
        (tool,) = [run for run in runs if run.starting.source is Source.SHIM]

        assert tool.pair == ("git statsu", 1), shell
        assert tool.finished is not None
        assert tool.finished.tail_source is TailSource.MERGED
        assert tool.finished.tail.startswith(b"git: 'statsu' is not a git command")


def test_a_tool_is_a_part_of_its_shell_s_command_and_its_children_are_unseen(stand: Stand) -> None:
    (stand.stage.folder / "Makefile").write_text("all:\n\t@git statsu\n")

    runs = stand.runs(["bash", "-c", "cd . && make; bash -c 'git --version'; sh -c true"])

    shell = only_command(runs)
    parts = [run.pair for run in runs if run.starting.parent == shell.starting.run]
    assert parts == [("make", 2), ("git --version", 0)]
    assert len(runs) == 3


def test_words_of_a_tool_are_told_as_a_shell_would_read_them(stand: Stand) -> None:
    words = ["git", "nope", "a b", "", "it's", "$HOME", "-x=1", "ä"]

    (run,) = stand.runs(words)

    assert run.command == "git nope 'a b' '' 'it'\\''s' '$HOME' -x=1 'ä'"


def test_successes_send_no_tail_unless_something_may_hide_in_them(stand: Stand) -> None:
    tails = {}
    for text in (
        "echo plain",
        "echo a; echo b",
        "echo c | cat",
        "true || echo d",
        "echo e\necho f",
    ):
        run = only_command(stand.runs(["bash", "-c", text]))
        assert run.finished is not None
        tails[text] = run.finished.tail

    assert tails == {
        "echo plain": b"",
        "echo a; echo b": b"a\nb\n",
        "echo c | cat": b"c\n",
        "true || echo d": b"",
        "echo e\necho f": b"e\nf\n",
    }


def test_the_last_bytes_of_long_outputs_are_told(stand: Stand) -> None:
    run = only_command(stand.runs(["bash", "-c", "seq 100000; seq 200000 300000 >&2; exit 1"]))

    assert run.finished is not None
    tail = run.finished.tail
    assert len(tail) == 8192
    assert tail.endswith(b"\n300000\n")
    assert b"\n100000\n" in tail  # the end of standard output comes before it
    assert run.finished.tail_total == len(b"".join(b"%d\n" % n for n in range(1, 100001))) + 700007


def test_a_file_behind_standard_output_is_read_afterwards(stand: Stand, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        subprocess.run(
            ["bash", "-c", "echo out; git statsu"],
            env=stand.stage.recorded,
            stdout=file,
            stderr=file,
            check=False,
        )
    stand.fence()

    run = only_command(stand.server.runs)
    assert run.finished is not None
    assert run.finished.tail_source is TailSource.MERGED
    assert run.finished.tail == (tmp_path / "log").read_bytes()


def test_a_background_job_does_not_delay_the_report(stand: Stand) -> None:
    process = subprocess.Popen(
        ["bash", "-c", "sleep 30 & echo $!; exit 3"],
        env=stand.stage.recorded,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    job = int(process.stdout.readline())
    process.wait(PATIENCE_S)
    stand.fence()

    assert only_command(stand.server.runs).exit == 3
    os.kill(job, signal.SIGKILL)
    with process.stdout as pipe:
        assert pipe.read() == b""  # the process that was left behind ends with the job


def test_each_failing_command_of_a_shell_that_reads_its_input_is_told(stand: Stand) -> None:
    text = b"cd sub\nnosuchprogram --x\ntrue\ngit statsu\nfalse\necho fine\ngit --version\n"

    runs = stand.runs(["/bin/bash"], stdin=text)

    assert [(run.starting.source, *run.pair) for run in runs] == [
        (Source.ENV, "nosuchprogram --x", 127),
        (Source.SHIM, "git statsu", 1),
        (Source.ENV, "false", 1),
        (Source.SHIM, "git --version", 0),
    ]
    assert {run.starting.cwd for run in runs} == {os.fsencode(stand.stage.folder / "sub")}


# --- whose words they are --------------------------------------------------------------------


def test_an_agent_s_own_shell_is_stepped_through_and_its_probes_are_silent(stand: Stand) -> None:
    inner = "exec /bin/bash -c 'git statsu'"
    outer = f"__CODEX_SNAPSHOT_X=1; {inner}"
    probe = "SNAPSHOT_FILE=/dev/null; git --version; bash -c 'git statsu'"
    vibe = ["sh", "-c", '{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; exec "$0" "$@"']

    for words in (
        ["/bin/bash", "-c", outer],
        ["bash", "-c", outer],
        ["/bin/zsh", "-c", outer.replace("bash", "zsh")],
        [*vibe, "/bin/zsh", "-c", "git statsu"],
    ):
        assert only_command(stand.runs(words)).pair == ("git statsu", 1), words
    for shell in ("/bin/bash", "bash", "/bin/zsh", "zsh"):
        assert stand.runs([shell, "-c", probe]) == []
        assert stand.runs([shell, "-lc", probe]) == []


@pytest.mark.parametrize("prefix", SILENT_PREFIXES)
def test_the_helper_knows_the_probes_that_the_daemon_knows(stand: Stand, prefix: str) -> None:
    assert stand.runs(["sh", "-c", f"{prefix}x\ngit --version"]) == []


@pytest.mark.parametrize("prefix", OUTER_PREFIXES)
def test_the_helper_knows_the_outer_shells_that_the_daemon_knows(stand: Stand, prefix: str) -> None:
    runs = stand.runs(["sh", "-c", f"{prefix}"])

    assert runs == []


def test_a_line_with_a_leading_blank_leaves_no_trace(stand: Stand) -> None:
    assert stand.runs(["bash", "-c", " git statsu; bash -c false"]) == []
    assert stand.runs(["/bin/bash", "-c", " git statsu"]) == []
    assert stand.runs(["/bin/bash", "-lc", " git statsu"]) == []


def test_nothing_is_told_where_recording_is_off(stand: Stand) -> None:
    environment = {**stand.stage.recorded, "FLIGHTREC_OFF": "1"}

    for words in (["bash", "-c", "false"], ["/bin/bash", "-lc", "git statsu"], ["git", "statsu"]):
        assert stand.runs(words, environment) == []


def test_what_a_login_profile_runs_is_no_part_of_the_command(stand: Stand) -> None:
    (stand.stage.folder.parent / ".profile").write_text("git statsu 2>/dev/null\n")
    (stand.stage.folder.parent / ".zprofile").write_text("git statsu 2>/dev/null\n")

    for words in (
        ["bash", "-lc", "git --version"],
        ["/bin/bash", "-lc", "git --version"],
        ["/bin/zsh", "-lc", "git --version"],
        ["zsh", "-lc", "git --version"],
    ):
        assert [run.pair for run in stand.runs(words)] == [("git --version", 0)] * 2, words
