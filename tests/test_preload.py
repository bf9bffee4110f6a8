"""A library in LD_PRELOAD catches a /bin/sh by its full path; it is off unless asked for."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_stage import PATIENCE_S, PLAIN_PATH, Seen, Stage, throwaway_stage
from agents.client_run import daemon_for, place_for
from agents.clients import MORE_CLIENTS
from agents.installs import NotInstalledError
from agents.mock_model import Run as Call
from agents.mock_model import Say
from agents.story import COMMANDS, SETTINGS
from daemon_process import FLIGHTREC, DaemonProcess, lasting_daemon
from flightrec.agent_session import place_preload, session_environment
from flightrec.config import parse_settings
from flightrec.errors import FlightrecError
from flightrec.paths import find_paths, find_resource
from flightrec.wire import Source
from helper_builds import preload_library
from recording_server import Manners, RecordingServer, Run
from test_shim import Stand, take_over
from test_transparency import FORMS, OPTIONS, STDIN, _furnish

AS_AGENTS_DO = """
import json, os, subprocess, sys
for command in json.loads(sys.argv[1]):
    done = subprocess.run(
        command, shell=True, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
    )
    print(json.dumps([command, done.returncode, done.stdout]))
"""
"""What mini-swe-agent does with what its model says: /bin/sh -c, one pipe."""


@pytest.fixture(scope="module")
def preloaded() -> Iterator[tuple[Stage, RecordingServer]]:
    """A stage with the library; the person has a library of their own."""
    preload_library()
    with throwaway_stage() as (stage, server):
        _furnish(stage.folder)
        place_preload(find_paths(str(stage.folder.parent)))
        session = replace(stage.session, preload=True)
        library = session_environment(stage.plain, session)["LD_PRELOAD"]
        yield replace(stage, recorded={**stage.recorded, "LD_PRELOAD": library}), server


@pytest.fixture
def stand(preloaded: tuple[Stage, RecordingServer]) -> Stand:
    return take_over(*preloaded)


def commands(runs: list[Run]) -> list[Run]:
    """Return the runs that are no parts of others."""
    return [run for run in runs if run.starting.parent is None]


def as_an_agent(stage: Stage, environment: dict[str, str], texts: list[str]) -> list[list[object]]:
    """Return text, status and output of each command."""
    seen = stage.run([sys.executable, "-c", AS_AGENTS_DO, json.dumps(texts)], environment)
    assert (seen.status, seen.errors) == (0, b"")
    return [json.loads(line) for line in seen.output.splitlines()]


# --- what is caught ----------------------------------------------------------------------------


def test_all_that_an_agent_runs_by_bin_sh_is_recorded_whole_and_once(stand: Stand) -> None:
    texts = [
        "git statsu",
        "python3 -c 'import sys; sys.exit(3)'",
        "make missing",
        "cd sub && cat missing.txt; echo to both >&2; exit 5",
        "printf 'out\\n'; nosuchprogram --x 2>&1 | cat",
        'test -d sub && export HERE=1 && echo "it\'s $HERE"',
        "for i in 1 2; do echo $i; done; (exit 4)",
        "nosuchprogram --x",
    ]
    plain = as_an_agent(stand.stage, stand.stage.plain, texts)

    before = set(stand.server.by_id)
    recorded = as_an_agent(stand.stage, stand.stage.recorded, texts)
    stand.fence()
    runs = commands([run for key, run in stand.server.by_id.items() if key not in before])

    assert recorded == plain
    assert [list(run.pair) for run in runs] == [row[:2] for row in plain]
    assert {run.starting.source for run in runs} == {Source.SH}
    assert {run.starting.shell for run in runs} == {b"sh"}
    for run, (_, status, output) in zip(runs, plain, strict=True):
        assert run.finished is not None
        if status:
            assert run.finished.tail.decode() == output


@pytest.mark.parametrize(
    "words",
    [
        ["/bin/sh", "-c"],
        ["/bin/sh", "-ec"],
        ["/bin/sh", "-o", "errexit", "-c"],
        ["/bin/dash", "-c"],
        ["sh", "-c"],
        ["/bin/bash", "-c"],
        ["/bin/bash", "-lc"],
        ["/bin/bash", "-ic"],
        ["/bin/bash", "--posix", "-c"],
        ["/bin/bash", "--rcfile", "/dev/null", "-c"],
        ["/bin/zsh", "-c"],
        ["/bin/zsh", "-fc"],
    ],
    ids=" ".join,
)
def test_a_shell_by_its_full_path_is_caught_once(stand: Stand, words: list[str]) -> None:
    (run,) = commands(stand.runs([*words, "nosuchprogram || exit 4"]))

    assert run.pair == ("nosuchprogram || exit 4", 4)
    assert run.starting.source is Source.SH


@pytest.mark.parametrize("outer", ["/bin/sh", "/bin/dash", "/bin/bash", "/bin/zsh"])
@pytest.mark.parametrize("inner", ["/bin/sh", "/bin/bash"])
def test_an_agent_s_own_shell_around_it_is_stepped_through(
    stand: Stand, outer: str, inner: str
) -> None:
    text = "{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; %s -c 'false || exit 4'; true"

    (run,) = commands(stand.runs([outer, "-c", text % inner]))

    assert run.pair == ("false || exit 4", 4)


def test_shells_below_a_command_are_not_commands(stand: Stand) -> None:
    text = "/bin/sh -c 'sh -c false; exec /bin/sh -c \"exit 3\"'; /bin/bash -c 'exit 4'"

    (run,) = commands(stand.runs(["/bin/sh", "-c", text]))

    assert run.pair == (text, 4)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("exec git statsu", 1),
        ("trap 'exit 9' EXIT", 9),
    ],
)
def test_the_true_end_is_told(stand: Stand, text: str, status: int) -> None:
    (run,) = commands(stand.runs(["/bin/sh", "-c", text]))

    assert run.exit == status


def test_a_hint_reaches_who_reads_both_streams_from_one_pipe(stand: Stand) -> None:
    stand.server.manners = Manners(hints={"git statsu": "flightrec: try: git status"})
    (stand.paths.hint_words).unlink(missing_ok=True)

    ((_, status, output),) = as_an_agent(stand.stage, stand.stage.recorded, ["git statsu"])

    assert status == 1
    assert str(output).startswith("flightrec: try: git status\ngit: 'statsu' is not")


# --- what is not -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["/bin/sh", "script"],
        ["/bin/sh", "-c", ""],
        ["/bin/sh", "-c"],
        ["/bin/bash", "script", "-c", "x"],
        ["/bin/bash", "--norc", "script", "-c"],
        ["./script"],
        ["echo its text #/sh"],
        ["python3", "-c", "print(1)"],
    ],
    ids=" ".join,
)
def test_what_is_no_shell_with_a_text_is_left_alone(stand: Stand, words: list[str]) -> None:
    script = stand.stage.folder / "echo its text #/sh"  # with -c its name is the text
    script.parent.mkdir(exist_ok=True)
    script.write_text("#!/bin/sh -c\n")
    script.chmod(0o755)
    plain = stand.stage.run(words, stand.stage.plain)

    assert stand.stage.run(words) == plain
    assert all(run.starting.source is Source.SHIM for run in stand.runs(words))


def test_without_a_session_or_when_switched_off_it_does_nothing(stand: Stand) -> None:
    environment = stand.stage.recorded
    words = ["/bin/sh", "-c", "exit 3"]
    no_session = {k: v for k, v in environment.items() if k != "FLIGHTREC_SESSION"}

    for variables in (
        no_session,
        {**environment, "FLIGHTREC_SESSION": "garbage"},
        {**environment, "FLIGHTREC_OFF": "1"},
        {**environment, "FLIGHTREC_INSIDE": "1"},
        {**environment, "FLIGHTREC_SILENT": str(os.getpid())},
        {**environment, "FLIGHTREC_HELPER": "/nonexistent"},
    ):
        assert stand.stage.run(words, variables) == Seen(3, b"", b"")
        assert stand.runs(words, variables) == []


def test_a_statically_linked_program_is_as_it_was(stand: Stand, tmp_path: Path) -> None:
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not installed")
    program, source = tmp_path / "sh", tmp_path / "hello.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n')
    subprocess.run(["musl-gcc", "-static", "-o", program, source], check=True)

    assert stand.stage.run([str(program), "-c", "x"]) == Seen(3, b"hello\n", b"")
    assert stand.runs([str(program), "-c", "x"]) == []


def test_a_program_of_another_libc_starts_with_it(stand: Stand, tmp_path: Path) -> None:
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not installed")
    program, source = tmp_path / "sh", tmp_path / "hello.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n')
    subprocess.run(["musl-gcc", "-o", program, source], check=True)

    assert stand.stage.run([str(program), "-c", "x"]) == Seen(3, b"hello\n", b"")


def test_a_privileged_program_says_what_it_says(stand: Stand) -> None:
    def as_somebody(environment: dict[str, str]) -> Seen:
        done = subprocess.run(
            ["/bin/su", "--nonsense"],
            env=environment,
            user=65534 if os.geteuid() == 0 else None,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Seen(done.returncode, done.stdout, done.stderr)

    assert as_somebody(stand.stage.recorded) == as_somebody(stand.stage.plain)


# --- nobody sees a difference ------------------------------------------------------------------


def without_pids(seen: Seen) -> Seen:
    return replace(seen, errors=re.sub(rb"(?<=:) +\d+ (?=[A-Z])", b" PID ", seen.errors))


@pytest.mark.parametrize("form", FORMS)
def test_a_recorded_bin_sh_is_as_a_plain_one(stand: Stand, form: str) -> None:
    words = ["/bin/sh", "-c", FORMS[form], "zero", "one", "t w o"]

    plain = stand.stage.run(words, stand.stage.plain, STDIN)
    recorded = stand.stage.run(words, None, STDIN)

    assert without_pids(recorded) == without_pids(plain)


@pytest.mark.parametrize("options", [*OPTIONS[:3], ["-o", "errexit", "-c"], ["-c", "-e", "--"]])
@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_options_mean_what_they_mean(stand: Stand, shell: str, options: list[str]) -> None:
    words = [
        shell,
        *options,
        'echo "$0" "$@"; false || echo $?; echo $nope',
        "zero",
        "one",
        "t w o",
    ]

    assert stand.stage.run(words) == stand.stage.run(words, stand.stage.plain)


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_descriptor_that_is_closed_stays_closed(stand: Stand, closed: int) -> None:
    text = "ls -l /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 | wc -l; cat; echo x >&2"
    outer = ["/usr/bin/python3", "-c", textwrap.dedent("""
        import os, sys
        os.close(int(sys.argv[1])); os.execv("/bin/sh", ["/bin/sh", "-c", sys.argv[2]])
    """), str(closed), text]  # fmt: skip

    assert stand.stage.run(outer, None, STDIN) == stand.stage.run(outer, stand.stage.plain, STDIN)


@pytest.mark.parametrize("value", ["", "libpthread.so.0", "libpthread.so.0:libdl.so.2"])
def test_the_person_s_own_libraries_stay_and_ours_is_gone_within_a_command(
    stand: Stand, value: str
) -> None:
    session = replace(stand.stage.session, preload=True)
    theirs = {**stand.stage.plain, "LD_PRELOAD": value}
    ours = session_environment(theirs, session)["LD_PRELOAD"]
    environment = {**stand.stage.recorded, "LD_PRELOAD": ours}

    for text in ('echo "[$LD_PRELOAD]"', "sh -c 'echo \"[$LD_PRELOAD]\"' | cat", " env | grep LD_"):
        for shell in ("/bin/sh", "/bin/bash"):
            seen = stand.stage.run([shell, "-c", text], environment)
            assert seen == stand.stage.run([shell, "-c", text], theirs)
    assert ours.endswith(f".so:{value}")


def test_without_libraries_of_one_s_own_the_variable_is_gone(stand: Stand) -> None:
    assert "LD_PRELOAD" not in stand.stage.plain

    assert stand.stage.run(["/bin/sh", "-c", "echo ${LD_PRELOAD-none}"]).output == b"none\n"


# --- `flightrec run --preload` -----------------------------------------------------------------


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    preload_library()
    with lasting_daemon() as running:
        yield running


@pytest.fixture
def environment(daemon: DaemonProcess) -> dict[str, str]:
    home = str(daemon.paths.home)
    return {"HOME": home, "PATH": PLAIN_PATH, "LANG": "C.UTF-8", "SHELL": "/bin/bash"}


def flightrec_run(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*FLIGHTREC, "run", *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def newest_session(daemon: DaemonProcess) -> list[tuple[object, ...]]:
    return daemon.query(
        "SELECT command, exit FROM runs WHERE parent IS NULL AND session_id ="
        " (SELECT max(session_id) FROM runs) ORDER BY id"
    )


AGENT = (sys.executable, "-c", AS_AGENTS_DO, '["nosuchprogram || exit 3"]')


def test_it_is_off_unless_asked_for(daemon: DaemonProcess, environment: dict[str, str]) -> None:
    code = "import os, subprocess; print(os.environ.get('LD_PRELOAD')); subprocess.call('f||:', shell=True)"  # noqa: E501 - one command

    done = flightrec_run(environment, "--quiet", "--", sys.executable, "-c", code)

    assert done.stdout == "None\n"
    assert ("f||:", 0) not in newest_session(daemon)
    assert not parse_settings("", "none").agents.preload


def test_the_option_and_the_setting_switch_it_on(
    daemon: DaemonProcess, environment: dict[str, str]
) -> None:
    flightrec_run(environment, "--preload", "--quiet", "--", *AGENT)
    assert newest_session(daemon) == [("nosuchprogram || exit 3", 3)]

    daemon.paths.config.parent.mkdir(parents=True, exist_ok=True)
    daemon.paths.config.write_text("[agents]\npreload = true\n")
    try:
        flightrec_run(environment, "--quiet", "--", *AGENT)
    finally:
        daemon.paths.config.unlink()
    assert newest_session(daemon) == [("nosuchprogram || exit 3", 3)]
    (runs,) = daemon.query("SELECT count(*) FROM runs WHERE command = 'nosuchprogram || exit 3'")
    assert runs == (2,)


def test_the_setting_leaves_agents_alone_that_are_seen_without(
    daemon: DaemonProcess, environment: dict[str, str]
) -> None:
    daemon.paths.config.parent.mkdir(parents=True, exist_ok=True)
    daemon.paths.config.write_text("[agents]\npreload = true\n")
    said = []
    try:
        for name in ("droid", "mini"):
            agent = daemon.paths.home / name
            agent.write_text(f"#!{sys.executable}\nimport os; print('LD_PRELOAD' in os.environ)\n")
            agent.chmod(0o755)
            said.append(flightrec_run(environment, "--quiet", "--", str(agent)).stdout)
    finally:
        daemon.paths.config.unlink()

    assert said == ["False\n", "True\n"]


@pytest.mark.parametrize("shell", ["sh", "/bin/sh", "bash", "/bin/bash"])
def test_a_shell_that_is_itself_given_to_it_is_one_command(
    daemon: DaemonProcess, environment: dict[str, str], shell: str
) -> None:
    text = f": {shell}; cd / && exit 3"

    done = flightrec_run(environment, "--preload", "--quiet", "--", shell, "-c", text)

    assert done.returncode == 3
    assert newest_session(daemon) == [(text, 3)]


def test_where_it_was_not_built_nothing_is_run(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Path:
        return find_resource(f"{name}.missing")

    monkeypatch.setattr("flightrec.agent_session.find_resource", missing)
    with pytest.raises(FlightrecError, match=r"flightrec-preload\.so.* is missing"):
        place_preload(find_paths())
    monkeypatch.undo()

    with tempfile.TemporaryDirectory(prefix="f r-", dir="/tmp") as spaced:
        done = flightrec_run({**environment, "HOME": spaced}, "--preload", "--", "touch", "ran")
        assert (done.returncode, done.stdout) == (1, "")
        assert "the loader cannot be told of" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not (Path(spaced) / "ran").exists()


def test_a_library_that_the_loader_complains_of_is_not_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = home / "broken.so"
    broken.write_bytes(b"\x7fELF of another machine")
    monkeypatch.setattr("flightrec.agent_session.find_resource", lambda _: broken)

    with pytest.raises(FlightrecError, match="cannot be used"):
        place_preload(find_paths(str(home)))


@pytest.mark.full
def test_mini_swe_agent_is_seen_whole(home: Path) -> None:
    preload_library()
    (client,) = (client for client in MORE_CLIENTS if client.name == "mini")
    try:
        program = client.package.install()
    except NotInstalledError as error:
        pytest.skip(str(error))
    script = (*(Call(command) for command, _ in COMMANDS), Say("done"))

    with place_for(client, program, home) as place:
        place.write(".config/flightrec/config.toml", f"{SETTINGS}[agents]\npreload = true\n")
        plain, _ = place.run(script, recorded=False)
        with daemon_for(place) as daemon:
            model, done = place.run(script, recorded=True)
            runs = daemon.query("SELECT command FROM runs WHERE parent IS NULL ORDER BY id")

    assert done.returncode == 0, done.stderr
    assert model.tool_results() == plain.tool_results()
    assert [command for (command,) in runs] == [command for command, _ in COMMANDS]
