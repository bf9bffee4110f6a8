"""What the stand-ins for shells and tools tell the daemon about what an agent starts."""

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pexpect
import psutil
import pytest

from agent_stage import (
    PATIENCE_S,
    Seen,
    Stage,
    only,
    open_stage,
    throwaway_stage,
    without_library,
)
from flightrec.hint_words import HintWords
from flightrec.missed import read_helper_counters
from flightrec.paths import find_paths
from flightrec.rules import Remedy, Trigger
from flightrec.unwrap import OUTER_PREFIXES, SILENT_PREFIXES
from flightrec.wire import (
    PROTOCOL,
    CommandFinished,
    CommandStarting,
    FrameReader,
    Hello,
    Source,
    TailSource,
    encode,
)
from helper_builds import SHIM
from hint_rules import make_hint_rule
from recording_server import Manners, RecordingServer, Run

NO_SOCKETS = Path(__file__).parent / "agents/no_sockets.py"


@pytest.fixture(scope="module")
def furnished() -> Iterator[tuple[Stage, RecordingServer]]:
    with throwaway_stage() as furnished:
        yield furnished


class Stand:
    """Runs something on the stage and returns what the server heard of it."""

    def __init__(self, stage: Stage, server: RecordingServer) -> None:
        self.stage, self.server = stage, server
        self.paths = find_paths(str(stage.folder.parent))

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

    def counted(self) -> Counter[str]:
        """Return what helpers have counted as missed since the stage was set up."""
        return Counter(read_helper_counters(self.paths.counters))

    def fence(self) -> None:
        """Return when the server has read all that was sent before."""
        for _ in range(3):  # accepted, read, handled
            with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
                connection.connect(str(self.server.path))
                connection.sendall(encode(Hello(PROTOCOL, b"test", b"fence")))
                connection.recv(1)


def take_over(stage: Stage, server: RecordingServer) -> Stand:
    """Return a stage on which earlier tests have left nothing."""
    stand = Stand(stage, server)
    stand.fence()  # what an earlier test has sent is not this one's
    server.manners = Manners()
    server.by_id.clear()
    server.messages.clear()
    stand.paths.breaker.unlink(missing_ok=True)
    return stand


@pytest.fixture
def stand(furnished: tuple[Stage, RecordingServer]) -> Stand:
    return take_over(*furnished)


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

HEAD = "| start | PATH | BASH_ENV | ZDOTDIR | SHELL | all |"


def test_each_door_catches_what_the_table_says(stand: Stand) -> None:
    """The table in shim/README.md; the one that was found is left in shim/build/doors.md."""
    (stand.stage.folder / "script").write_text("git statsu\n")
    lines = [HEAD, "|---" * (len(DOORS) + 1) + "|"]
    for launcher, (words, stdin) in LAUNCHERS.items():
        cells = [f"`{launcher}`".replace("|", "\\|")]
        for doors in DOORS:
            environment = only(stand.stage, *doors)
            started = [environment["SHELL"] if word == "$SHELL" else word for word in words]
            cells.append(_cell(stand.runs(started, environment, stdin)))
        lines.append(f"| {' | '.join(cells)} |")
    (SHIM / "build/doors.md").write_text("\n".join([*lines, ""]))

    assert "\n".join(lines) == _documented_table()


def _documented_table() -> str:
    lines = (SHIM / "README.md").read_text().splitlines()
    first = lines.index(HEAD)
    return "\n".join(lines[first : lines.index("", first)])


def _cell(runs: list[Run]) -> str:
    """Return who reported the failure, parts of a command after it; every status is checked.

    Who: S a stand-in for the shell, E a shell's own script, X the tool's stand-in.
    """
    assert all(run.exit == 1 or "tail" in run.command for run in runs)
    commands = [run for run in runs if run.starting.parent is None]
    known = {run.starting.run for run in commands}
    assert all(run.starting.parent in known for run in runs if run not in commands)
    parts = [run for run in runs if run not in commands]
    letters = [LETTERS[run.starting.source] for run in commands]
    return " ".join(letters) + "".join(f"+{LETTERS[run.starting.source]}" for run in parts)


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
        ["timeout", "0.3", "/bin/bash", "-lc", "true; sleep 9"],
    ):
        assert only_command(stand.runs(words)).exit == 143, words


ENDLESS = [
    "true; sleep 9",
    "(sleep 9)",
    "true; sleep 9 | cat",
    "while :; do :; done",
    "f() { sleep 9; }; f",
]
ENDS = [
    ("true", 0),
    ("git statsu", 1),
    ("exit 4", 4),
    ("f() { exit 5; }; f", 5),
    ("set -e; false; true", 1),
    ("sleep 0.5 >/dev/null 2>&1 & true", 0),
    ("nosuchprogram", 127),
    ("if", 2),
]


@pytest.mark.parametrize("option", ["-c", "-lc"])
@pytest.mark.parametrize(
    ("text", "status"), [*ENDS, ("kill -9 $$", 137), ("exec sh -c 'exit 3'", 3)]
)
def test_a_bash_by_full_path_is_seen_to_its_end(
    stand: Stand, option: str, text: str, status: int
) -> None:
    run = only_command(stand.runs(["/bin/bash", option, text]))

    assert run.starting.source is Source.SH
    assert run.exit == status


def test_a_login_bash_by_full_path_has_a_tail(stand: Stand) -> None:
    run = only_command(stand.runs(["/bin/bash", "-lc", "echo out; git statsu"]))

    assert run.finished is not None
    assert b"'statsu' is not a git command" in run.finished.tail


# --- a bash that loads no builtins -----------------------------------------------------------


@pytest.mark.parametrize("text", ENDLESS)
def test_a_time_limit_of_a_login_bash_without_the_library_is_unknown(
    stand: Stand, text: str
) -> None:
    words = ["timeout", "0.3", "/bin/bash", "-lc", text]
    run = only_command(stand.runs(words, without_library(stand.stage)))

    assert run.starting.source is Source.ENV
    assert run.exit is None


@pytest.mark.parametrize(("text", "status"), ENDS)
def test_a_login_bash_without_the_library_tells_its_end(
    stand: Stand, text: str, status: int
) -> None:
    run = only_command(stand.runs(["/bin/bash", "-lc", text], without_library(stand.stage)))

    assert run.starting.source is Source.ENV
    assert run.exit == status


@pytest.mark.parametrize("text", ["exit 4", "kill -9 $$", "git statsu | cat; exit 3"])
def test_a_bash_without_the_library_is_started_twice_and_seen(stand: Stand, text: str) -> None:
    run = only_command(stand.runs(["/bin/bash", "-c", text], without_library(stand.stage)))

    assert run.starting.source is Source.SH
    assert run.pair == (text, {"e": 4, "k": 137, "g": 3}[text[0]])


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


def test_parts_are_told_before_the_whole_and_by_one_connection(stand: Stand) -> None:
    before = stand.server.connections

    stand.runs(["bash", "-c", "git --version; git statsu | cat; git --version"])

    ended = [m for m in stand.server.messages if isinstance(m, CommandFinished)]
    commands = [stand.server.by_id[message.run].command for message in ended]
    assert commands == [
        "git --version",
        "git statsu",
        "git --version",
        "git --version; git statsu | cat; git --version",
    ]
    fences = 3
    assert stand.server.connections - before == 1 + fences


def test_a_part_that_outlives_its_shell_is_told_all_the_same(stand: Stand) -> None:
    words = ["bash", "-c", "{ read -r x; git statsu; } <&3 & exit 4"]
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        ["bash", "-c", f"exec 3<&{ours}; exec bash -c '{words[2]}'"],
        env=stand.stage.recorded,
        pass_fds=(ours,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    process.wait(PATIENCE_S)
    os.write(theirs, b"go on\n")
    assert process.stderr is not None
    with process.stderr as errors:
        errors.read()  # until the last part of it has ended
    os.close(ours)
    os.close(theirs)
    stand.fence()

    assert [run.pair for run in stand.server.runs if run.starting.source is Source.SHIM] == [
        ("git statsu", 1)
    ]


def test_more_parts_than_a_shell_s_stand_in_holds_are_told_directly(stand: Stand) -> None:
    text = "for i in $(seq 40); do git statsu $(printf '%04000d' $i) 2>/dev/null; done"

    runs = stand.runs(["bash", "-c", text])

    assert len([run for run in runs if run.starting.source is Source.SHIM]) == 40
    assert all(run.finished is not None for run in runs)


def test_parts_are_left_in_no_file_but_a_shell_s_stand_in_s(stand: Stand, tmp_path: Path) -> None:
    """Its number may be another process's by now, and what is open there somebody's file."""
    file, deleted = tmp_path / "theirs", tmp_path / "deleted"
    file.touch()
    with deleted.open("w+b") as open_file:
        deleted.unlink()
        for path in (str(file), f"/proc/{os.getpid()}/fd/{open_file.fileno()}"):
            environment = {
                **stand.stage.recorded,
                "FLIGHTREC_INSIDE": "1",
                "FLIGHTREC_PARENT": "1" * 32,
                "FLIGHTREC_PARTS": path,
            }
            runs = stand.runs(["git", "statsu"], environment)
            assert [run.pair for run in runs] == [("git statsu", 1)], path
        assert open_file.read() == b""
    assert file.read_bytes() == b""


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


@pytest.mark.parametrize("shell", ["bash", "/bin/zsh"])
def test_the_last_bytes_of_a_flood_are_told(stand: Stand, shell: str) -> None:
    """Most of a flood is moved on unread."""
    text = "seq 3000000; echo the end; exit 1"

    run = only_command(stand.runs([shell, "-c", text]))
    seen = stand.stage.run([shell, "-c", text], stand.stage.plain)

    assert run.finished is not None
    assert run.finished.tail == seen.output[-8192:]
    assert run.finished.tail_total == len(seen.output)


def test_the_last_bytes_of_a_flood_are_told_before_a_slow_reader_has_them(stand: Stand) -> None:
    process = subprocess.Popen(
        ["bash", "-c", "seq 100000; exit 1"], env=stand.stage.recorded, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    got = b""
    while process.poll() is None:  # no more than has to be read for the program to end
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
            break
        got += os.read(process.stdout.fileno(), 4096)
    stand.fence()
    with process.stdout as rest:
        got += rest.read()

    run = only_command(stand.server.runs)
    assert run.finished is not None
    assert run.finished.tail == got[-8192:]
    assert run.finished.tail_total == len(got)
    assert got.split() == [b"%d" % number for number in range(1, 100_001)]


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


@pytest.mark.parametrize("shell", ["/bin/bash", "bash", "/bin/zsh", "zsh"])
@pytest.mark.parametrize("options", ["-c", "-lc"])
def test_an_agent_s_snapshot_of_a_probe_silences_no_command(
    stand: Stand, shell: str, options: str
) -> None:
    """Codex writes down a login shell's environment, and puts it into every shell of a command."""
    probe = "SNAPSHOT_FILE=x; export -p >snapshot"
    command = "__CODEX_SNAPSHOT_X=1; . ./snapshot; exec SHELL -c 'git statsu'"
    path = f"/bin/{Path(shell).name}"

    assert stand.runs([shell, options, probe]) == []

    runs = stand.runs([path, "-c", command.replace("SHELL", path)])
    assert only_command(runs).pair == ("git statsu", 1)


@pytest.mark.parametrize("prefix", SILENT_PREFIXES)
def test_the_helper_knows_the_probes_that_the_daemon_knows(stand: Stand, prefix: str) -> None:
    assert stand.runs(["sh", "-c", f"{prefix}x\ngit --version"]) == []


@pytest.mark.parametrize(
    "prefix", [*OUTER_PREFIXES, "/bin/bash -c '{ socat TCP", "/agents/shells/zsh -c '{ socat TCP"]
)
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


# --- hints -----------------------------------------------------------------------------------

HINT = "flightrec: previously failed here (2×: unknown subcommand); try: git status"


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "sh", "zsh", "/bin/zsh"])
def test_a_hint_comes_first_on_standard_error(stand: Stand, shell: str) -> None:
    stand.server.manners.hints["statsu"] = HINT

    seen = stand.stage.run([shell, "-c", "git statsu; x=$(git statsu 2>&1); exit 5"])

    assert seen.status == 5
    assert seen.errors.decode().startswith(f"{HINT}\ngit: 'statsu' is not a git command")
    assert seen.output == b""
    assert seen.errors.count(b"flightrec") == 1  # its parts say nothing


@pytest.fixture
def words(stand: Stand) -> Iterator[HintWords]:
    """The filter of a daemon that knows one rule."""
    trigger = Trigger("unknown subcommand", ("git", "statsu"))
    rule = make_hint_rule(trigger, Remedy("replace", ("git", "status")))
    words = HintWords(stand.paths.hint_words)
    words.publish()
    words.add([rule])
    yield words
    words.close()
    stand.paths.hint_words.unlink()


def test_a_command_in_no_rule_is_not_held_up_by_a_question(stand: Stand, words: HintWords) -> None:
    asked = {}
    for command in ("make nothing", "git --version", "cd sub && git statsu", "(git;true)"):
        run = only_command(stand.runs(["bash", "-c", command]))
        asked[command] = run.starting.wants_reply

    assert asked == {
        "make nothing": False,
        "git --version": True,
        "cd sub && git statsu": True,
        "(git;true)": True,
    }
    words.clear()
    assert not only_command(stand.runs(["bash", "-c", "git statsu"])).starting.wants_reply


def test_a_filter_whose_daemon_is_gone_is_not_believed(stand: Stand, words: HintWords) -> None:
    words.clear()
    gone = subprocess.Popen(["true"])
    gone.wait()
    with stand.paths.hint_words.open("r+b") as file:
        file.seek(8)
        file.write(struct.pack("<I", gone.pid))

    assert only_command(stand.runs(["bash", "-c", "make nothing"])).starting.wants_reply


def test_a_login_bash_by_full_path_gets_its_hint(stand: Stand) -> None:
    stand.server.manners.hints["statsu"] = HINT

    seen = stand.stage.run(["/bin/bash", "-lc", "git statsu"])

    assert seen.errors.decode().startswith(f"{HINT}\n")


def test_a_tool_without_a_shell_gets_its_hint_where_nothing_can_be_confused(stand: Stand) -> None:
    stand.server.manners.hints["statsu"] = HINT
    words = ["git", "statsu"]

    apart = stand.stage.run(words)
    together = subprocess.run(
        words,
        env=stand.stage.recorded,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    substituted = stand.stage.run(["/bin/sh", "-c", 'x=$(git statsu 2>&1); echo "[$x]"'])

    assert apart.errors.decode().startswith(f"{HINT}\n")
    assert b"flightrec" not in together.stdout
    assert b"flightrec" not in substituted.output + substituted.errors


def test_a_hint_cannot_command_the_terminal(stand: Stand) -> None:
    """T4, T9: whatever the daemon says."""
    stand.server.manners.hints["true"] = "flightrec: \x1b]0;title\x07\x1b[2J try\r\nthis\nand this"

    seen = stand.stage.run(["bash", "-c", "true"])

    assert all(byte >= 0x20 or byte in b"\r\n" for byte in seen.errors)
    assert len(seen.errors.splitlines()) <= 2


def test_a_private_command_sends_no_end(stand: Stand) -> None:
    stand.server.manners.private = ("secret-word",)

    assert stand.runs(["bash", "-c", "echo secret-word; false"]) == []
    assert not any(isinstance(m, CommandFinished) for m in stand.server.messages)


# --- a daemon that is not as it should be ------------------------------------------------------


def test_a_dead_daemon_changes_nothing_and_what_is_lost_is_counted(stand: Stand) -> None:
    before = stand.counted()
    stand.server.stop()
    try:
        seen = stand.stage.run(["bash", "-c", "git statsu; exit 3"])
    finally:
        stand.server.start()

    assert (seen.status, seen.output) == (3, b"")
    assert seen.errors.startswith(b"git: 'statsu'")
    assert (stand.counted() - before)["lost runs"] == 2  # the command and its part


def test_a_daemon_that_never_answers_is_waited_for_once(stand: Stand) -> None:
    stand.server.manners.replies = False
    before = stand.counted()

    for _ in range(4):
        stand.stage.run(["bash", "-c", "exit 3"])
        stand.stage.run(["git", "--version"])
    stand.fence()

    assert (stand.counted() - before)["missed replies"] == 1
    assert len(stand.server.finished) == 8  # told all the same


def test_a_daemon_that_talks_nonsense_changes_nothing(stand: Stand) -> None:
    stand.server.manners.garbage = b"\xff" * 64

    seen = stand.stage.run(["bash", "-c", "echo out; exit 3"])

    assert seen == Seen(3, b"out\n", b"")


def test_a_long_command_outlives_its_daemon_and_is_told_to_the_next(stand: Stand) -> None:
    process = subprocess.Popen(
        ["bash", "-c", "echo started; read -r line; exit 3"],
        env=stand.stage.recorded,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    stand.server.stop()
    stand.server.by_id.clear()
    stand.server.start()

    process.stdin.close()
    process.wait(PATIENCE_S)
    process.stdout.close()
    stand.fence()

    assert stand.server.finished == [("echo started; read -r line; exit 3", 3)]


# --- sandboxes -------------------------------------------------------------------------------


@contextlib.contextmanager
def daemon_s_fifo(stand: Stand) -> Iterator[int]:
    """The FIFO as the daemon holds it."""
    os.mkfifo(stand.paths.events_fifo, 0o600)
    descriptor = os.open(stand.paths.events_fifo, os.O_RDWR | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        stand.paths.events_fifo.unlink()


def in_sandbox(words: Sequence[str]) -> list[str]:
    return [sys.executable, str(NO_SOCKETS), *words]


SHELLS = pytest.mark.parametrize(
    "shell", [["bash", "-c"], ["/bin/bash", "-c"], ["/bin/bash", "-lc"]], ids=" ".join
)


@SHELLS
def test_a_sandboxed_command_goes_through_the_fifo_in_two_whole_writes(
    stand: Stand, shell: list[str]
) -> None:
    text = "git statsu # " + "x" * 5000

    with daemon_s_fifo(stand) as fifo:
        seen = stand.stage.run(in_sandbox([*shell, text]))
        data = os.read(fifo, 65536)

    messages = FrameReader().feed(data)
    starting, finished = messages[0], messages[-1]
    assert isinstance(starting, CommandStarting)
    assert isinstance(finished, CommandFinished)
    assert len(messages) == 4  # the part as well
    assert starting.run == finished.run
    assert starting.truncated
    assert starting.command == text[:1500].encode()
    assert starting.command_total == len(text)
    assert (finished.exit, finished.tail_source) == (1, TailSource.STDERR)
    assert finished.tail.startswith(b"git: 'statsu'")
    assert all(len(encode(message)) <= 4096 for message in messages)
    assert seen.errors.startswith(b"git: 'statsu'")
    assert stand.server.runs == []


def test_a_sandboxed_command_s_frames_never_exceed_one_write(stand: Stand) -> None:
    deep = stand.stage.folder / ("d" * 200) / ("e" * 200) / ("f" * 200) / ("g" * 200)
    deep.mkdir(parents=True)
    environment = {**stand.stage.recorded, "FLIGHTREC_AGENT": "a" * 3000, "VIRTUAL_ENV": "v" * 4000}
    text = f"cd {deep}; seq 20000; git statsu {'y' * 3000}"

    with daemon_s_fifo(stand) as fifo:
        stand.stage.run(in_sandbox(["bash", "-c", text]), environment)
        messages = FrameReader().feed(os.read(fifo, 65536))

    assert len(messages) == 4
    assert all(len(encode(message)) <= 4096 for message in messages)


@pytest.mark.parametrize(
    "words",
    [["bash", "-c", "git statsu"], ["/bin/bash", "-lc", "git statsu"], ["git", "statsu"]],
    ids=" ".join,
)
def test_a_sandbox_without_a_daemon_s_fifo_is_silent(stand: Stand, words: list[str]) -> None:
    sandboxed = stand.stage.run(in_sandbox(words))
    plain = stand.stage.run(words, stand.stage.plain)

    assert sandboxed == plain


def test_a_full_fifo_holds_nobody_up(stand: Stand) -> None:
    with daemon_s_fifo(stand) as fifo:
        for size in (4096, 1):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(fifo, b"x" * size)
        seen = stand.stage.run(in_sandbox(["bash", "-c", "exit 3"]))

    assert seen == Seen(3, b"", b"")


# --- bad input -------------------------------------------------------------------------------


def test_a_long_text_is_cut_and_says_so(stand: Stand) -> None:
    text = ": " + "x" * 100_000

    run = only_command(stand.runs(["bash", "-c", text]))

    assert run.starting.truncated
    assert run.starting.command == text[: 16 * 1024].encode()
    assert run.starting.command_total == len(text)


def test_a_command_line_of_two_megabytes_runs_and_is_told_in_part(stand: Stand) -> None:
    words = ["git", "statsu", *["x" * 1000] * 1900]

    (run,) = stand.runs(words)

    assert run.exit == 1
    assert run.starting.truncated
    assert len(run.starting.command) == 16 * 1024
    assert run.starting.command_total > 1_900_000


def test_a_command_line_at_the_system_s_limit_is_as_without_us(stand: Stand) -> None:
    """What we add may be too much for the system; then nothing of ours is there."""
    limit = os.sysconf("SC_ARG_MAX")
    for left in (200, 1_000, 3_000, 10_000):
        sizes = sum(len(k) + len(v) + 10 for k, v in stand.stage.recorded.items())
        count, rest = divmod(limit - sizes - left, 100_016)
        words = ["/bin/bash", "-c", "echo $#", "zero", *["x" * 100_007] * count, "x" * rest]
        with contextlib.suppress(OSError):  # too much already without us
            assert stand.stage.run(words).output == b"%d\n" % (count + 1), left


def test_bytes_that_are_no_text_are_told_as_they_are(stand: Stand) -> None:
    text = b"printf '\\377\\200' >&2; : \xff\xfe; exit 1"

    run = only_command(stand.runs(["bash", "-c", text]))  # type: ignore[list-item] # bytes are fine

    assert run.starting.command == text
    assert run.finished is not None
    assert run.finished.tail == b"\xff\x80"


def test_endless_errors_pass_by_in_flat_memory(stand: Stand) -> None:
    process = subprocess.Popen(
        ["bash", "-c", "yes 'an error' >&2"], env=stand.stage.recorded, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    got = 0
    while got < 200_000_000:
        got += len(os.read(process.stderr.fileno(), 1 << 20))
    resident = psutil.Process(process.pid).memory_info().rss
    process.terminate()
    process.stderr.close()
    process.wait(PATIENCE_S)

    assert resident < 5 * 1024 * 1024


def test_a_deleted_folder_of_stand_ins_leaves_everything_running(home: Path) -> None:
    with open_stage(home) as stage:
        shutil.rmtree(stage.session.shims)
        for words in (
            ["bash", "-c", "git statsu; exit 3"],
            ["/bin/bash", "-lc", "git statsu; exit 3"],
            ["/bin/zsh", "-lc", "git statsu; exit 3"],
            ["git", "statsu"],
            [stage.recorded["SHELL"], "-c", "git statsu; exit 3"],
        ):
            plain = [
                stage.plain["SHELL"] if word == stage.recorded["SHELL"] else word for word in words
            ]
            assert stage.run(words) == stage.run(plain, stage.plain), words


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "zsh", "/bin/zsh", "sh"])
def test_a_folder_of_stand_ins_may_be_deleted_by_a_command(home: Path, shell: str) -> None:
    with open_stage(home) as stage:
        text = f"rm -rf {stage.session.shims}; git statsu; bash -c 'git statsu'; sh -c 'exit 4'"
        recorded = stage.run([shell, "-c", text])
        assert recorded == stage.run([shell, "-c", text], stage.plain)


def test_copies_that_are_gone_leave_shells_by_full_path_running(home: Path) -> None:
    with open_stage(home) as stage:
        shutil.rmtree(stage.session.placed.folder)
        for words in (["/bin/bash", "-c", "git statsu; exit 3"], ["/bin/sh", "-c", "git statsu"]):
            assert stage.run(words) == stage.run(words, stage.plain), words


def test_a_temporary_folder_that_cannot_be_written_matters_to_nobody(stand: Stand) -> None:
    environment = {**stand.stage.recorded, "TMPDIR": "/proc/nowhere"}

    run = only_command(stand.runs(["bash", "-c", "git statsu | cat"], environment))

    assert run.finished is not None
    assert run.finished.pipestatus == [1, 0]


def test_a_tool_that_is_gone_is_not_found(stand: Stand) -> None:
    (stand.stage.session.shims / "nosuchtool").symlink_to(stand.stage.session.placed.helper)

    seen = stand.stage.run(["bash", "-c", "nosuchtool x; echo $?"])

    assert seen == Seen(0, b"127\n", b"nosuchtool: command not found\n")


def test_a_tool_that_may_not_be_executed_is_refused(stand: Stand, tmp_path: Path) -> None:
    (stand.stage.session.shims / "plaintool").symlink_to(stand.stage.session.placed.helper)
    (tmp_path / "plaintool").write_text("#!/bin/sh\n")
    environment = dict(stand.stage.recorded)
    environment["PATH"] += f":{tmp_path}"

    seen = stand.stage.run(["bash", "-c", "plaintool x; echo $?"], environment)

    assert seen == Seen(0, b"126\n", b"plaintool: Permission denied\n")


def test_a_tool_without_an_interpreter_line_is_a_shell_script(stand: Stand, tmp_path: Path) -> None:
    (stand.stage.session.shims / "baretool").symlink_to(stand.stage.session.placed.helper)
    (tmp_path / "baretool").write_text('echo "script $1"; exit 3\n')
    (tmp_path / "baretool").chmod(0o755)
    environment = dict(stand.stage.recorded)
    environment["PATH"] += f":{tmp_path}"

    assert stand.stage.run(["baretool", "one"], environment) == Seen(3, b"script one\n", b"")


def test_a_relative_folder_on_path_is_searched_as_ever(stand: Stand) -> None:
    mine = stand.stage.folder / "git"
    mine.write_text("#!/bin/sh\necho my own git\n")
    mine.chmod(0o755)
    environment = dict(stand.stage.recorded)
    environment["PATH"] = environment["PATH"].replace(":", ":.:", 1)
    try:
        assert stand.stage.run(["bash", "-c", "git"], environment).output == b"my own git\n"
    finally:
        mine.unlink()


@pytest.mark.parametrize("copied", [False, True], ids=["links", "copies"])
def test_stand_ins_never_run_each_other_for_ever(
    stand: Stand, home: Path, tmp_path: Path, *, copied: bool
) -> None:
    """T18: folders of them on PATH by other names, of another copy, and as files of their own."""
    with open_stage(home) as other:
        folders = []
        for number, session in enumerate((stand.stage.session, other.session)):
            folders.append(tmp_path / f"again-{number}")
            if copied:
                folders[-1].mkdir()
                for name in ("git", "sh", "bash"):
                    shutil.copy(session.placed.helper, folders[-1] / name)
            else:
                folders[-1].symlink_to(session.shims)
        environment = dict(stand.stage.recorded)
        environment["PATH"] = ":".join([*map(str, folders), environment["PATH"]])

        seen = stand.stage.run(["bash", "-c", "git --version; sh -c 'exit 4'"], environment)

    assert (seen.status, seen.errors) == (4, b"")
    assert seen.output.startswith(b"git version")


def test_a_moved_home_does_not_make_a_stand_in_find_itself(stand: Stand) -> None:
    """T18."""
    environment = {**stand.stage.recorded, "HOME": "/nonexistent", "FLIGHTREC_SHIMS": "/nowhere"}

    assert stand.stage.run(["bash", "-c", "git statsu"], environment).status == 1


def test_a_privileged_program_is_left_alone(stand: Stand, tmp_path: Path) -> None:
    """T18: it would not be what it is below a stand-in."""
    tool = tmp_path / "setuidtool"
    shutil.copy("/usr/bin/true", tool)
    tool.chmod(0o4755)
    (stand.stage.session.shims / "setuidtool").symlink_to(stand.stage.session.placed.helper)
    environment = dict(stand.stage.recorded)
    environment["PATH"] += f":{tmp_path}"

    assert stand.runs(["setuidtool"], environment) == []


def test_a_tool_on_a_terminal_is_left_alone_and_a_shell_there_is_told(stand: Stand) -> None:
    """T18."""
    for words in (["git", "statsu"], ["bash", "-c", "git statsu"]):
        child = pexpect.spawn(words[0], words[1:], env=stand.stage.recorded, timeout=PATIENCE_S)
        child.read()
        child.close()
    stand.fence()

    (run,) = stand.server.runs
    assert run.pair == ("git statsu", 1)
    assert run.finished is not None
    assert run.finished.tail == b""  # the terminal is not touched


# --- what the person has of one's own ----------------------------------------------------------


@pytest.fixture
def person_s_stage(home: Path) -> Iterator[Stage]:
    """A person with a BASH_ENV, a ZDOTDIR and profiles that set PATH anew."""
    zdotdir = home / "zsh files"
    zdotdir.mkdir()
    (home / "my env").write_text("MINE=bash_env; trap_of_mine() { :; }\n")
    (home / ".profile").write_text("export PROFILE=yes; PATH=/usr/bin:/bin:$PATH\n")
    (zdotdir / ".zshenv").write_text("MINE=zshenv$ZDOTDIR; typeset -A OF_MINE; OF_MINE[a]=b\n")
    (zdotdir / ".zprofile").write_text("export PROFILE=$ZDOTDIR; path=(/usr/bin /bin $path)\n")
    (zdotdir / ".zshrc").write_text("RC=$ZDOTDIR; typeset -i NUMBER=3\n")
    (zdotdir / ".zlogin").write_text("LOGIN=$ZDOTDIR\n")
    with open_stage(home, BASH_ENV="$HOME/my env", ZDOTDIR=str(zdotdir)) as stage:
        yield stage


OWN_BASH = 'echo "$MINE|$PROFILE|$BASH_ENV|$ZDOTDIR|$(type -t trap_of_mine)|$0|$*"'
OWN_ZSH = 'echo "$MINE|$PROFILE|$RC|$LOGIN|$ZDOTDIR|$BASH_ENV|$OF_MINE[a]|$NUMBER|$0|$*"'


@pytest.mark.parametrize("options", ["-c", "-lc", "-ic", "-lic"])
@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "zsh", "/bin/zsh", "$SHELL"])
@pytest.mark.parametrize("pipe", ["", " | cat"])
def test_the_person_s_own_start_up_files_are_read_as_ever(
    person_s_stage: Stage, shell: str, options: str, pipe: str
) -> None:
    if shell == "/bin/bash" and "i" in options:
        pytest.skip("reads no file of ours, so BASH_ENV still names ours")
    text = (OWN_ZSH if "zsh" in shell else OWN_BASH) + pipe

    plain, recorded = (
        person_s_stage.run(
            [environment["SHELL"] if shell == "$SHELL" else shell, options, text, "zero", "a  b"],
            environment,
        )
        for environment in (person_s_stage.plain, person_s_stage.recorded)
    )

    assert recorded == plain
    assert b"|" in plain.output


@pytest.mark.parametrize("shell", ["/bin/bash", "bash", "/bin/zsh", "zsh"])
def test_our_folder_is_first_again_after_a_login_profile(person_s_stage: Stage, shell: str) -> None:
    seen = person_s_stage.run([shell, "-lc", 'echo "$PATH"'])

    folders = seen.output.decode().strip().split(":")
    ours = str(person_s_stage.session.shims)
    assert folders[0] == ours
    assert folders.count(ours) == 1


def test_shells_below_a_recorded_one_have_the_person_s_variables(person_s_stage: Stage) -> None:
    for shell in ("bash", "/bin/bash", "zsh", "/bin/zsh"):
        for options in ("-c", "-lc"):
            text = "env | grep -E '^(BASH_ENV|ZDOTDIR)=' | sort"
            seen = person_s_stage.run([shell, options, text])
            assert seen.output.decode().splitlines() == [
                f"BASH_ENV={person_s_stage.plain['BASH_ENV']}",
                f"ZDOTDIR={person_s_stage.plain['ZDOTDIR']}",
            ], (shell, options)
