"""Whoever starts a shell or a tool sees no difference: status, standard output, standard error.

Each form is run in a plain environment and in a recorded one, by the name on PATH (the stand-in)
and by the full path (what ``BASH_ENV`` and ``.zshenv`` make of it).
"""

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pexpect
import psutil
import pytest

from agent_stage import PATIENCE_S, Seen, Stage, throwaway_stage, without_library
from daemon_process import wait_until
from flightrec.paths import HELPER_NAME, find_resource
from helper_builds import sanitized_helper

FORMS = {
    "both streams": "echo out; echo err >&2",
    "exit status": "exit 7",
    "empty text": "",
    "only a comment": "# nothing",
    "leading newline": "\necho second line",
    "several lines": "echo one\necho two >&2\nexit 4",
    "pipeline": "echo a b | wc -w",
    "failure that a pipeline hides": "git statsu 2>&1 | tail -n 2",
    "error of a pipeline's first part": "git statsu | cat",
    "pipefail": "set -o pipefail; false | true; echo $?",
    "errexit": "set -e; false; echo not here",
    "or": "git statsu || echo otherwise",
    "not found": "nosuchprogram --flag",
    "not executable": "./data.txt",
    "a folder": "./sub",
    "script without #!": "./bare; echo $?",
    "failing tool": "git statsu",
    "tool without errors": "git statsu 2>/dev/null; echo $?",
    "substitution": 'x=$(git statsu 2>&1); echo "[$x]"',
    "substitution of output": 'x=$(git --version); echo "[$x]"; y=$(git nope); echo "[$y]"',
    "backticks": "echo `git --exec-path`",
    "exec of a tool": "exec git --version",
    "exec of a builtin's name": "exec echo gone; echo not here",
    "exit trap": "trap 'echo bye' EXIT; exit 3",
    "exit trap after a failure": "trap 'echo \"was $?\"' EXIT; false",
    "trapped signal": "trap 'echo caught' TERM; kill -TERM $$; echo after",
    "killed": "kill -9 $$",
    "terminated": "kill -TERM $$; sleep 5",
    "aborted": "kill -ABRT $$",
    "killed child": "sh -c 'kill -9 $$'; echo $?",
    "subshell": "(cd sub; exit 4); echo $? $PWD",
    "group": "{ echo a; echo b >&2; } 2>&1 | cat",
    "here-document": "cat <<'X'\nfirst\nsecond\nX",
    "reads a line": 'read -r line; echo "got $line"; cat',
    "reads all": "cat",
    "tool reads": "python3 -c 'import sys; print(len(sys.stdin.read()))'",
    "binary": r"printf '\377\000\200\n\033[31m'",
    "no newline": "printf 'no newline'",
    "unicode": "echo 'äöü €'; echo 'ß' >&2",
    "opens standard error": "echo opened >/dev/stderr",
    "opens standard output": "echo opened >/dev/stdout",
    "closed descriptor": "echo x >&3",
    "swapped streams": "{ echo one; echo two >&2; } 3>&1 1>&2 2>&3",
    "closed output": "exec >&-; git --version",
    "closed errors": "exec 2>&-; git statsu",
    "redirected to a file": "git --version >f; git statsu 2>>f; cat f; rm f",
    "long output": "seq 30000",
    "long errors": "seq 30000 >&2",
    "head": "yes | head -n 3",
    "tail": "seq 100000 | tail -n 1",
    "closed reader inside": "seq 1000000 | head -n 1; echo $?",
    "for": "for i in 1 2 3; do echo $i; done | wc -l",
    "background and wait": "sleep 0.05 & wait; echo done",
    "background writer": "(sleep 0.2; echo late; echo later >&2) & echo now",
    "background tool": "(sleep 0.1; git statsu) & echo now",
    "background without output": "sleep 0.3 >/dev/null 2>&1 & echo now",
    "timeout": "timeout 0.2 sleep 5; echo $?",
    "timeout of a shell": "timeout 0.2 bash -c 'trap \"exit 9\" TERM; sleep 5'; echo $?",
    "xargs": "echo a b | xargs -n 1 git statsu",
    "find": "find . -maxdepth 0 -exec git --version {} \\;",
    "env": "env A=1 git --version",
    "nested shell": "bash -c 'exit 5'; echo $?",
    "nested words": "sh -c 'echo $0 \"$@\"' name a 'b  c'",
    "nested login": "bash -lc 'echo in; exit 6'; echo $?",
    "script": "sh ./script; bash ./script; ./script",
    "interpreter": "python3 -c 'import sys; print(sys.executable, sys.argv); sys.exit(3)'",
    "interpreter killed": "python3 -c 'import os; os.kill(os.getpid(), 15)'; echo $?",
    "child of a tool": "python3 -c 'import subprocess as s; print(s.getoutput(\"git --version\"))'",
    "virtual environment's finder": "python3 -c 'import shutil; print(shutil.which(\"git\"))'",
    "which": "which git python3",
    "make": "make -s fine; make -s broken; echo $?",
    "privileged": "su --version | head -n 1",
    "directory": "cd sub && pwd && git rev-parse --show-toplevel; echo $?",
    "level": "echo $SHLVL",
    "umask": "umask; ulimit -n",
    "no terminal": "test -t 1; echo $?; test -t 2; echo $?",
    "kind of output": "test -p /dev/stdout && echo pipe; test -p /dev/stderr && echo pipe",
    "descriptors": "ls /proc/self/fd | wc -l",
    "ignored signals": "grep -E 'SigIgn|SigBlk' /proc/self/status",
    "alias expansion off": "alias ll=ls; ll",
    "functions": "f() { git statsu; }; f; echo $?",
    "process number": "test $$ -gt 1; echo $?",
    "large argument": "python3 -c 'import sys; print(sys.argv[1:])' $(printf '%050000d' 1)",
    "syntax error": "if",
    "unclosed quote": "echo 'abc",
    "arithmetic": "echo $((6 * 7)); echo $((1 / 0))",
    "glob": "echo d*.txt nothing*",
    "private": " echo with a leading blank; exit 2",
    "strict mode": "set -eu; x=$(git statsu 2>&1 | tail -n 1); echo $x; echo $nope; echo no",
    "heredoc for an interpreter": "python3 - <<'PY'\nimport nosuchmodule\nPY\necho $?",
    "heredoc that is expanded": "x=5; cat <<X\n$x $(git --version)\nX",
    "log of one's own": "exec 3>&1 >log 2>&1; git --version; git statsu; cat log >&3; rm log",
    "log that grows": "exec >>log 2>>log; git statsu; echo x; wc -l log; rm log; exit 3",
    "tee": "git statsu 2>&1 | tee /dev/stderr | wc -l",
    "failure and traps": "trap 'echo \"end $?\"' EXIT INT TERM; git statsu; exit 9",
    "failed job": "(exit 7) & wait $!; echo $?",
    "killed job": "sleep 5 & kill $!; wait $!; echo $?",
    "nohup": "nohup sleep 0.1 >/dev/null 2>&1 & echo started",
    "session of its own": "setsid -w git statsu; echo $?",
    "killed by its limit": "timeout -s KILL 0.2 sleep 9; echo $?",
    "limit in the foreground": "timeout --foreground 0.2 sleep 9; echo $?",
    "whole group killed": "setsid -w sh -c 'trap \"exit 4\" TERM; kill 0; sleep 1'; echo $?",
    "parallel": "echo a b c | xargs -n 1 -P 3 git statsu 2>/dev/null; echo $?",
    "few descriptors": "ulimit -n 16; git statsu; ls >/dev/null; echo $?",
    "no descriptors": "(ulimit -n 4; git --version); echo $?",
    "empty environment": "env -i PATH=$PATH git statsu; echo $?",
    "folder is gone": "mkdir gone; cd gone; rmdir ../gone; git --version; pwd; echo $?",
    "no path": "unset PATH; git --version; echo $?",
    "path is empty": "PATH=; git statsu; echo $?",
    "other home": "HOME=/nonexistent git statsu; HOME=/ bash -c 'git statsu'; echo $?",
    "unwritable temporary folder": "TMPDIR=/proc/nope bash -c 'cat <<X\nx\nX\ngit statsu'; echo $?",
    "full device": "git statsu 2>/dev/full; echo $?; git --version >/dev/full; echo $?",
    "tool without input": "git hash-object --stdin <&-; echo $?",
    "descriptors for a tool": "exec 4<data.txt; python3 -c 'import os; print(os.read(4, 9))'",
    "shell of a tool": "python3 -c 'import os; print(os.system(\"git statsu\"))'",
    "hook of a tool": "git -c alias.x='!echo hook; exit 3' x; echo $?",
    "shell fed by a pipe": "echo 'false; git statsu; exit 4' | sh; echo $?",
    "big variable": "export BIG=$(printf '%0100000d' 1); git --version; sh -c 'echo ${#BIG}'",
    "no text": b"echo '\xff\xfe'; cat '\xff'; git '\xfe'; exit 3".decode(errors="surrogateescape"),
    "control sequences": r"printf '\033]133;C\007\033]7;file://x\033\\\033[?1049h' >&2; exit 1",
    "carriage returns": "echo a\r\ngit statsu\r",
}

BASH_FORMS = {
    "options and words": 'echo "$-" "$0" "$#" "$@"',
    "underscore": "echo $_",
    "option names": "echo $SHELLOPTS $BASHOPTS",
    "text of itself": "echo $BASH_EXECUTION_STRING",
    "pipe statuses": "false | true | (exit 3); echo ${PIPESTATUS[*]}",
    "process substitution": "diff <(echo a) <(echo b); cat < <(git statsu 2>&1)",
    "coprocess": "coproc cat; echo hi >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x",
    "error trap": "trap 'echo \"failed $?\"' ERR; false; git statsu",
    "debug trap": "trap 'echo \"+ $BASH_COMMAND\"' DEBUG; true; echo x",
    "traps listed": "trap; trap 'true' EXIT; trap -p",
    "names": "compgen -A function; declare -F",
    "exported function": "f() { echo exported; }; export -f f; bash -c f; sh -c true",
    "unset variable": "set -u; echo $nope; echo not here",
    "time": "TIMEFORMAT=%%; time true",
    "read with time limit": "read -t 0.1 x </dev/null; echo $?",
    "here-string": "cat <<< hello; python3 -c 'import sys; print(sys.stdin.read())' <<< 'x y'",
    "other first word": "exec -a -git git statsu",
    "both streams to a pipe": "git statsu |& head -n 1; git statsu &>/dev/null; echo $?",
    "errors to a substitution": "git statsu 2> >(sed 's/^/E: /'); sleep 0.2; echo done",
    "job let go": "sleep 0.2 >/dev/null 2>&1 & disown; echo x",
    "one process": "echo $(($$ == BASHPID)); (echo $(($$ == BASHPID))); ps -o comm= -p $$",
    "its children": "sleep 9 & pgrep -c -P $$; kill $!; wait; pgrep -c -P $$; echo $?",
    "its parent": "kill -0 $PPID; echo $?",
    "its jobs": "jobs; echo ${!-none}; sleep 0.1 & jobs | wc -l; wait; echo $?; jobs",
    "its builtins": "enable | wc -l; compgen -b | md5sum; type -a enable",
    "its variables": "for x in $(compgen -v); do case ${x^^} in\n"
    "*FLIGHTREC* | PIPESTATUS) ;; *) echo $x ;; esac; done",
    "its place": 'echo "$LINENO $BASH_SUBSHELL ${BASH_SOURCE[*]} ${FUNCNAME[*]} $BASH_COMMAND"',
    "its signals": "trap '' INT; trap : USR1; grep -e SigIgn -e SigCgt /proc/$$/status",
    "its descriptors": "echo /proc/$$/fd/* >list; wc -w <list; exec 5</dev/null; ls /proc/$$/fd",
    "its group": "echo $(($(ps -o pgid= -p $$) == $(ps -o pgid= -p $PPID)))",
    "waits for a child": "sleep 0.1 & wait -n; echo $?; wait; (exit 3) & wait $!; echo $?",
    "restricted from here on": "set -re; git statsu | cat; exit 7",
    "files may not grow": "ulimit -f 0; git statsu | cat; exit 7",
    "shell fed by a here-document": "bash -s a <<'X'\necho $1\ngit statsu\nexit 5\nX\necho $?",
}

NOT_IN_A_LOGIN_BASH = {
    "traps listed",
    "names",
    "debug trap",
    "one process",
    "its signals",
    "its descriptors",
    "restricted from here on",
}
"""One that loads no builtins is reported from its EXIT trap, which these look at or stop."""

OPTIONS = (
    ["-ec"],
    ["-uc"],
    ["-xc"],
    ["-eo", "pipefail", "-c"],
    ["-c", "-e", "--"],
    ["-c", "-l"],
    ["-rc"],
    ["-kc"],
)

TOOLS = (
    ["git", "--version"],
    ["git", "statsu"],
    ["git", "rev-parse", "--show-toplevel"],
    ["python3", "-c", "import sys; print(sys.argv[0], sys.executable); sys.exit('failed')"],
    ["python3", "-c", "import os; os.kill(os.getpid(), 9)"],
    ["python3", "-c", "import sys; sys.stdout.write(sys.stdin.read())"],
    ["make", "broken"],
    ["make", "nothing"],
    ["which", "git"],
    ["env", "-u", "LANG", "git", "statsu"],
    ["env", "-i", "PATH=/usr/bin:/bin", "git", "statsu"],
    ["timeout", "5", "git", "statsu"],
    ["xargs", "-n", "1", "git"],
)

STDIN = b"first\nsecond\n"


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with throwaway_stage() as (stage, _):
        _furnish(stage.folder)
        yield stage


def _furnish(folder: Path) -> None:
    (folder / "data.txt").write_text("data\n")
    (folder / "bare").write_text("echo bare script; exit 3\n")
    (folder / "script").write_text("#!/bin/sh\necho script; git statsu; exit 3\n")
    (folder / "Makefile").write_text("fine:\n\t@git --version\nbroken:\n\t@git statsu\n")
    for name in ("bare", "script"):
        (folder / name).chmod(0o755)


def assert_same(stage: Stage, words: list[str], stdin: bytes = STDIN) -> None:
    plain = stage.run(words, stage.plain, stdin)
    recorded = stage.run(words, stage.recorded, stdin)

    assert _without_pids(recorded) == _without_pids(plain)


def _without_pids(seen: Seen) -> Seen:
    """bash names processes in its messages."""
    return replace(seen, errors=re.sub(rb"(?<=:) +\d+ (?=[A-Z])", b" PID ", seen.errors))


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "sh", "zsh", "/bin/zsh"])
@pytest.mark.parametrize("form", FORMS)
def test_a_recorded_shell_is_as_a_plain_one(stage: Stage, shell: str, form: str) -> None:
    if form == "which" and shell.endswith("zsh"):
        pytest.skip("a builtin of zsh, which finds the stand-ins as `command -v` does")
    assert_same(stage, [shell, "-c", FORMS[form], "zero", "one", "t w o"])


@pytest.mark.parametrize("shell", ["bash", "/bin/bash"])
@pytest.mark.parametrize("form", BASH_FORMS)
def test_a_recorded_bash_is_as_a_plain_one(stage: Stage, shell: str, form: str) -> None:
    assert_same(stage, [shell, "-c", BASH_FORMS[form], "zero", "one", "t w o"])


@pytest.mark.parametrize("form", FORMS | BASH_FORMS)
def test_a_recorded_login_bash_is_as_a_plain_one(stage: Stage, form: str) -> None:
    assert_same(stage, ["/bin/bash", "-lc", (FORMS | BASH_FORMS)[form]])


@pytest.mark.parametrize("form", FORMS | BASH_FORMS)
def test_a_recorded_bash_that_loads_no_builtins_is_as_a_plain_one(stage: Stage, form: str) -> None:
    words = ["/bin/bash", "-c", (FORMS | BASH_FORMS)[form], "zero", "one", "t w o"]

    assert_same(replace(stage, recorded=without_library(stage)), words)


@pytest.mark.parametrize("form", sorted((FORMS | BASH_FORMS).keys() - NOT_IN_A_LOGIN_BASH))
def test_a_recorded_login_bash_that_loads_no_builtins_is_as_a_plain_one(
    stage: Stage, form: str
) -> None:
    words = ["/bin/bash", "-lc", (FORMS | BASH_FORMS)[form]]

    assert_same(replace(stage, recorded=without_library(stage)), words)


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "zsh", "/bin/zsh"])
@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_options_before_the_text_mean_what_they_mean(
    stage: Stage, shell: str, options: list[str]
) -> None:
    if "-xc" in options and "zsh" in shell:
        pytest.skip("/etc/zsh/zshenv, traced, shows PATH")
    if {"-rc", "-kc"} & {*options} and "zsh" in shell:
        pytest.skip("it has other meanings")
    text = 'echo "$0" "$@"; false || echo $?; git statsu; echo $nope'

    assert_same(stage, [shell, *options, text, "zero", "one", "t w o"])


@pytest.mark.parametrize("words", TOOLS, ids=" ".join)
def test_a_tool_that_is_started_without_a_shell_is_as_a_plain_one(
    stage: Stage, words: list[str]
) -> None:
    assert_same(stage, words, b"statsu\n--version\n")


@pytest.mark.parametrize(
    "words",
    [
        ["bash", "-c", "echo $0 $BASH; nosuchprogram"],
        ["zsh", "-c", "echo $0; nosuchprogram"],
        ["python3", "-c", "import sys; print(sys.executable, sys.orig_argv[0])"],
        ["git", "statsu"],
    ],
    ids=lambda words: words[0],
)
def test_a_program_that_was_looked_up_on_path_has_its_own_name(
    stage: Stage, words: list[str]
) -> None:
    """Agents look for bash once, and start it by the path that they found."""
    plain, recorded = (
        stage.run([shutil.which(words[0], path=environment["PATH"]) or "", *words[1:]], environment)
        for environment in (stage.plain, stage.recorded)
    )

    assert recorded == plain


@pytest.mark.parametrize("shell", [["bash"], ["/bin/bash"], ["bash", "-s", "one"], ["zsh"], ["sh"]])
def test_a_shell_that_reads_standard_input_is_as_a_plain_one(
    stage: Stage, shell: list[str]
) -> None:
    text = b'echo "$1"; false; git statsu; nosuchprogram; x=$(git nope 2>&1); echo "$x"; exit 5\n'

    assert_same(stage, shell, text)


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "/bin/zsh"])
@pytest.mark.parametrize("form", ["both streams", "not found", "head", "opens standard error"])
def test_standard_output_and_error_may_be_one_pipe(stage: Stage, shell: str, form: str) -> None:
    plain, recorded = (
        subprocess.run(
            [shell, "-c", FORMS[form]],
            env=environment,
            cwd=stage.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
        for environment in (stage.plain, stage.recorded)
    )

    assert (recorded.returncode, recorded.stdout) == (plain.returncode, plain.stdout)


def test_the_order_of_two_streams_in_one_pipe_is_kept(stage: Stage) -> None:
    text = "for i in $(seq 200); do echo $i; echo $i >&2; done; python3 -c 'import sys\nfor i in range(200): print(i, flush=True); print(i, file=sys.stderr)'"  # noqa: E501 - one command line

    done = subprocess.run(
        ["bash", "-c", text],
        env=stage.recorded,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE_S,
        check=True,
    )

    numbers = [*range(1, 201), *range(200)]
    assert done.stdout.split() == [b"%d" % number for number in numbers for _ in range(2)]


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "/bin/zsh"])
@pytest.mark.parametrize("form", ["both streams", "opens standard error", "kind of output", "head"])
def test_standard_streams_may_be_sockets(stage: Stage, shell: str, form: str) -> None:
    """As Node's child processes have them: bash then needs SHLVL to read BASH_ENV."""

    def run(environment: dict[str, str]) -> tuple[int, bytes, bytes]:
        ends = [socket.socketpair() for _ in range(3)]
        words = [shell, "-c", FORMS[form] + "; test -S /dev/fd/1 && echo socket"]
        process = subprocess.Popen(
            words,
            env=environment,
            cwd=stage.folder,
            stdin=ends[0][1],
            stdout=ends[1][1],
            stderr=ends[2][1],
        )
        for _, theirs in ends:
            theirs.close()
        ends[0][0].shutdown(socket.SHUT_WR)
        output, errors = (_read_all(mine) for mine, _ in ends[1:])
        return process.wait(PATIENCE_S), output, errors

    assert run(stage.recorded) == run(stage.plain)


def _read_all(mine: socket.socket) -> bytes:
    with mine, mine.makefile("rb") as stream:
        return stream.read()


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "zsh", "/bin/zsh", "sh"])
@pytest.mark.parametrize("count", [5_000, 70_000])
def test_an_environment_may_be_large(stage: Stage, shell: str, count: int) -> None:
    """At worst a command is unseen; a shell that we could not mark was once caught for ever."""
    if count > 5_000 and shell.endswith("bash"):
        pytest.skip("bash alone needs minutes for so many variables")
    more = {f"V{number:x}": "" for number in range(count)}
    words = [shell, "-c", "git --version; echo ${V1-unset}; git statsu"]

    recorded = stage.run(words, {**stage.recorded, **more})

    assert recorded == stage.run(words, {**stage.plain, **more})


CLOSED = ("<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-", ">&- 2>&-", "<&- 2>&-")


@pytest.mark.parametrize("words", [["bash"], ["/bin/bash"], ["zsh"], ["/bin/zsh"], ["sh"], []])
@pytest.mark.parametrize("closed", CLOSED)
def test_standard_descriptors_may_be_closed(stage: Stage, words: list[str], closed: str) -> None:
    """What we open meanwhile must not take their place."""
    text = "for i in 0 1 2; do test -e /proc/$$/fd/$i && echo $i; done >seen; echo x; git statsu"
    command = [*words, "-c", text] if words else ["git", "statsu"]
    launcher = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *command]
    seen = stage.folder / "seen"
    found = []
    for environment in (stage.plain, stage.recorded):
        seen.write_text("")
        found.append((stage.run(launcher, environment), seen.read_text()))

    assert found[1] == found[0]


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "zsh", "/bin/zsh", "sh"])
def test_a_reader_that_was_never_there_ends_a_program_at_its_first_word(
    stage: Stage, tmp_path: Path, shell: str
) -> None:
    def run(environment: dict[str, str]) -> tuple[int, bool]:
        reader, writer = os.pipe()
        os.close(reader)
        mark = tmp_path / "mark"
        mark.unlink(missing_ok=True)
        words = [shell, "-c", f"echo a; echo >{mark}; exit 3"]
        done = subprocess.run(words, env=environment, stdout=writer, check=False)
        os.close(writer)
        return done.returncode, mark.exists()

    assert run(stage.recorded) == run(stage.plain)


@pytest.mark.parametrize("kind", ["pipe", "socket"])
@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "zsh", "/bin/zsh", "sh"])
def test_a_reader_that_goes_ends_a_program_at_its_next_word(
    stage: Stage, tmp_path: Path, shell: str, kind: str
) -> None:
    def run(environment: dict[str, str]) -> tuple[int, bool]:
        if kind == "pipe":
            reader, writer = os.pipe()
        else:
            reader, writer = (end.detach() for end in socket.socketpair())
        mark = tmp_path / "mark"
        mark.unlink(missing_ok=True)
        process = subprocess.Popen(
            [shell, "-c", f"read -r line; echo b; echo >{mark}; exit 3"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=writer,
        )
        os.close(writer)
        os.close(reader)
        if environment is stage.recorded:
            wait_until(lambda: not os.path.lexists(f"/proc/{process.pid}/fd/1"))
        process.communicate(b"go on\n", PATIENCE_S)
        return process.returncode, mark.exists()

    assert run(stage.recorded) == run(stage.plain)


def test_a_pipe_with_a_name_may_get_another_reader(stage: Stage, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    first = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with fifo.open("wb") as writer:
        process = subprocess.Popen(
            ["bash", "-c", "echo a; read -r line; echo b; exit 3"],
            env=stage.recorded,
            stdin=subprocess.PIPE,
            stdout=writer,
        )
    wait_until(lambda: select.select([first], [], [], 0)[0])
    assert os.read(first, 100) == b"a\n"
    os.close(first)
    with os.fdopen(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb") as second:
        process.communicate(b"go on\n", PATIENCE_S)
        assert (process.returncode, second.read()) == (3, b"b\n")


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "zsh", "/bin/zsh", "sh"])
def test_an_output_that_a_program_closes_ends_at_once(stage: Stage, shell: str) -> None:
    """Its reader need not wait for the program's end."""
    process = subprocess.Popen(
        [shell, "-c", "echo a; echo b >&2; exec >&- 2>&-; read -r line"],
        env=stage.recorded,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdin, process.stdout, process.stderr:
        assert process.stdout.read() == b"a\n"
        assert process.stderr.read() == b"b\n"
        assert process.poll() is None
    process.wait(PATIENCE_S)


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "/bin/zsh"])
@pytest.mark.parametrize("append", [True, False])
def test_standard_streams_may_be_one_file(
    stage: Stage, tmp_path: Path, shell: str, *, append: bool
) -> None:
    def run(environment: dict[str, str], path: Path) -> tuple[int, bytes]:
        path.write_bytes(b"before\n")
        with path.open("ab" if append else "wb") as file:
            text = "echo a; echo b >&2; seq 9000; git statsu; echo c"
            done = subprocess.run(
                [shell, "-c", text], env=environment, stdout=file, stderr=file, check=False
            )
        return done.returncode, path.read_bytes()

    recorded, plain = tmp_path / "recorded", tmp_path / "plain"
    assert run(stage.recorded, recorded) == run(stage.plain, plain)


def _run_on_terminal(stage: Stage, words: list[str], environment: dict[str, str]) -> str:
    child = pexpect.spawn(
        words[0],
        words[1:],
        env=environment,
        cwd=str(stage.folder),
        encoding="utf-8",
        timeout=PATIENCE_S,
    )
    output = child.read()
    child.close()
    return f"{output}\n{child.exitstatus} {child.signalstatus}"


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "zsh", "sh"])
@pytest.mark.parametrize("form", ["both streams", "failing tool", "no terminal", "killed", "make"])
def test_a_terminal_stays_a_terminal(stage: Stage, shell: str, form: str) -> None:
    words = [shell, "-c", FORMS[form] + "; tty; ls --color=auto"]

    plain = _run_on_terminal(stage, words, stage.plain)
    recorded = _run_on_terminal(stage, words, stage.recorded)

    assert _without_pts(recorded) == _without_pts(plain)


def _without_pts(text: str) -> str:
    return re.sub(r"/dev/pts/\d+", "/dev/pts/N", text)


# --- signals ---------------------------------------------------------------------------------

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL, signal.SIGUSR1)

UNDER_SIGNAL = {
    "waits": "sh -c 'echo ready; exec sleep 0.5'; echo after",
    # a group's signal is also passed on: the trap may be entered twice
    "traps": "trap 'trap \"\" TERM INT HUP USR1; echo trapped; exit 9' TERM INT HUP USR1;"
    " sh -c 'echo ready; exec sleep 0.5' & wait",
    "becomes another": "exec sh -c 'echo ready; exec sleep 0.5'",
    "pipeline": "sh -c 'echo ready; exec sleep 0.5' | cat; echo after",
}


def _await_sleep(pid: int) -> None:
    """Return once the process and all below it wait for something."""
    while True:
        tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        if all(process.status() == psutil.STATUS_SLEEPING for process in tree):
            return
        time.sleep(0.005)


def _signalled(
    environment: dict[str, str], words: list[str], number: int, *, group: bool
) -> tuple[int, bytes]:
    process = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    first = os.read(process.stdout.fileno(), 100)
    _await_sleep(process.pid)
    (os.killpg if group else os.kill)(process.pid, number)
    status = process.wait(PATIENCE_S)
    os.set_blocking(process.stdout.fileno(), False)
    rest = process.stdout.read() or b""
    with process.stdout, contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return status, first + rest


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "/bin/zsh"])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("kind", UNDER_SIGNAL)
@pytest.mark.parametrize("group", [True, False], ids=["group", "process"])
def test_a_signal_ends_a_recorded_shell_as_it_ends_a_plain_one(
    stage: Stage, shell: str, number: signal.Signals, kind: str, *, group: bool
) -> None:
    words = [shell, "-c", UNDER_SIGNAL[kind]]

    plain = _signalled(stage.plain, words, number, group=group)
    recorded = _signalled(stage.recorded, words, number, group=group)

    if group and number == signal.SIGHUP and "zsh" in shell and recorded[0] == -signal.SIGSEGV:
        recorded = (plain[0], recorded[1])  # a second hang-up at once crashes zsh itself
    assert recorded == plain


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "/bin/zsh"])
def test_a_killed_stand_in_takes_its_shell_along(
    stage: Stage, shell: str, wait_for: Callable[..., object]
) -> None:
    words = [shell, "-c", "echo $$; exec sleep 60"]
    process = subprocess.Popen(words, env=stage.recorded, stdout=subprocess.PIPE)
    assert process.stdout is not None
    pid = int(process.stdout.readline())

    process.kill()
    process.wait(PATIENCE_S)
    process.stdout.close()

    wait_for(lambda: not Path(f"/proc/{pid}/exe").exists(), what="the shell's end")


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "/bin/zsh"])
@pytest.mark.parametrize(
    "text", ["exec sleep 60", "sleep 60 & wait", "trap 'exit 5' HUP; sleep 60 & wait"]
)
def test_a_terminal_that_is_closed_ends_what_runs_on_it(
    stage: Stage, shell: str, text: str, wait_for: Callable[..., object]
) -> None:
    """The system tells the leader of the session alone, which is the stand-in."""

    def run(environment: dict[str, str]) -> int:
        words = [shutil.which(shell, path=environment["PATH"]) or "", "-c", "echo ready; " + text]
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(words[0], words, environment)  # noqa: S606 - as agents do
        while b"ready" not in os.read(terminal, 100):
            pass
        _await_sleep(pid)
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
        wait_for(lambda: not any(p.is_running() for p in processes), what="the end of all")
        return os.waitstatus_to_exitcode(status)

    assert run(stage.recorded) == run(stage.plain)


@pytest.mark.parametrize("words", [["bash", "-c", "yes"], ["/bin/bash", "-c", "yes; echo $?"]])
def test_a_reader_that_goes_away_ends_the_writer(stage: Stage, words: list[str]) -> None:
    def run(environment: dict[str, str]) -> int:
        process = subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        return process.wait(PATIENCE_S)

    assert run(stage.recorded) == run(stage.plain)


@pytest.mark.parametrize("shell", ["bash", "/bin/bash"])
def test_an_exit_is_seen_at_once_though_a_background_job_goes_on(stage: Stage, shell: str) -> None:
    words = [shell, "-c", "sleep 3 & echo started"]
    process = subprocess.Popen(words, env=stage.recorded, stdout=subprocess.PIPE)
    assert process.stdout is not None

    begin = time.monotonic()
    process.wait(PATIENCE_S)
    ended_s = time.monotonic() - begin
    with process.stdout as pipe:
        output = pipe.read()
    closed_s = time.monotonic() - begin

    assert output == b"started\n"
    assert ended_s < 2 < closed_s


@pytest.mark.parametrize("shell", ["bash", "/bin/bash"])
def test_a_stopped_reader_does_not_keep_a_signal_from_the_shell(stage: Stage, shell: str) -> None:
    """A full pipe must not hang the stand-in: it still has signals to pass on."""
    process = subprocess.Popen(
        [shell, "-c", "trap 'exit 9' TERM; yes & wait"],
        env=stage.recorded,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.read(1)
    time.sleep(0.3)  # for both pipes to fill up, which nobody can see from here

    process.terminate()

    status = process.wait(PATIENCE_S)
    with process.stdout, contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    assert status == 9


@pytest.mark.parametrize("shell", ["bash", "/bin/bash"])
def test_a_pipe_of_a_size_of_its_own_keeps_it(stage: Stage, shell: str) -> None:
    reading, writing = os.pipe()
    size = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen([shell, "-c", "seq 100000"], env=stage.recorded, stdout=writing)
    os.close(writing)

    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().splitlines()
        still = fcntl.fcntl(reading, fcntl.F_GETPIPE_SZ)

    assert process.wait(PATIENCE_S) == 0
    assert len(lines) == 100_000
    assert still == size


def test_one_full_stream_does_not_hold_up_the_other(stage: Stage) -> None:
    process = subprocess.Popen(
        ["bash", "-c", "yes & sleep 0.3; echo through >&2; kill $!; wait 2>/dev/null"],
        env=stage.recorded,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None

    line = process.stderr.readline()

    process.stdout.close()
    process.stderr.close()
    process.wait(PATIENCE_S)
    assert line == b"through\n"


# --- the same with a helper that ends itself at the first memory error --------------------------

SANITIZED_FORMS = (
    "both streams",
    "failure that a pipeline hides",
    "exec of a tool",
    "killed",
    "reads all",
    "binary",
    "closed output",
    "closed errors",
    "long output",
    "long errors",
    "closed reader inside",
    "background writer",
    "nested words",
    "not found",
    "which",
    "make",
    "large argument",
    "private",
)


@pytest.fixture(scope="module")
def sanitized_stage() -> Iterator[Stage]:
    def find(name: str) -> Path:
        return sanitized_helper() if name == HELPER_NAME else find_resource(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flightrec.agent_session.find_resource", find)
        with throwaway_stage() as (stage, _):
            _furnish(stage.folder)
            yield stage


@pytest.mark.parametrize("shell", ["bash", "/bin/bash"])
@pytest.mark.parametrize("form", SANITIZED_FORMS)
def test_a_sanitized_stand_in_has_nothing_to_report(
    sanitized_stage: Stage, shell: str, form: str
) -> None:
    assert_same(sanitized_stage, [shell, "-c", FORMS[form], "zero", "one", "t w o"])


@pytest.mark.parametrize(
    "words",
    [
        ["git", "statsu", *["x" * 1000] * 1500],
        ["git", "", "'", "\n", "a" * 20_000],
        ["bash", "-c", ": " + "y" * 100_000],
        ["bash", "-o", "pipefail"],
        ["bash", "-c"],
        ["bash", "--rcfile"],
        ["zsh", "-opipefail", "-c", "false | true"],
        ["sh", "-", "script"],
    ],
    ids=range(8),
)
def test_odd_words_are_nothing_to_a_sanitized_stand_in(
    sanitized_stage: Stage, words: list[str]
) -> None:
    assert_same(sanitized_stage, words)
