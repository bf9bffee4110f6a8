"""A bash that makes two processes of itself, where something is not as usual."""

import contextlib
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from agent_stage import PATIENCE_S, Stage, throwaway_stage, without_library
from flightrec.agent_session import place_files
from flightrec.paths import BASH_DOOR_NAME, find_paths, find_resource
from flightrec.wire import Source
from helper_builds import bash_library, helper
from recording_server import RecordingServer
from test_shim import NO_SOCKETS, Stand, only_command, take_over

OPTIONS = pytest.mark.parametrize("option", ["-c", "-lc"])

ONCE = "echo ran >>log; cat log; rm log; git statsu; exit 3"


@pytest.fixture(scope="module")
def furnished() -> Iterator[tuple[Stage, RecordingServer]]:
    with throwaway_stage() as furnished:
        yield furnished


@pytest.fixture
def stand(furnished: tuple[Stage, RecordingServer]) -> Stand:
    return take_over(*furnished)


def assert_as_plain(stand: Stand, option: str, environment: dict[str, str]) -> None:
    words = ["/bin/bash", option, ONCE]

    assert stand.stage.run(words, environment) == stand.stage.run(words, stand.stage.plain)


def with_helper(stand: Stand, folder: Path, content: bytes) -> dict[str, str]:
    """Return the recorded environment with another helper, which has our library beside it."""
    helper = folder / "helper"
    helper.write_bytes(content)
    helper.chmod(0o700)
    shutil.copy(bash_library(), folder)
    return {**stand.stage.recorded, "FLIGHTREC_HELPER": str(helper)}


@OPTIONS
def test_a_helper_that_cannot_be_executed_leaves_one_shell(
    stand: Stand, option: str, tmp_path: Path
) -> None:
    environment = with_helper(stand, tmp_path, b"\x7fELF, and no more")

    assert_as_plain(stand, option, environment)


@OPTIONS
def test_a_broken_library_leaves_the_shell_as_it_is(stand: Stand, option: str) -> None:
    environment = without_library(stand.stage)
    library = Path(environment["FLIGHTREC_SCRIPTS"]) / BASH_DOOR_NAME
    library.write_bytes(b"\x7fELF, and no more")

    assert_as_plain(stand, option, environment)

    library.unlink()


@OPTIONS
def test_a_session_that_is_none_leaves_a_shell_unseen(stand: Stand, option: str) -> None:
    environment = {**stand.stage.recorded, "FLIGHTREC_SESSION": "nonsense"}

    assert_as_plain(stand, option, environment)
    assert stand.runs(["/bin/bash", option, ONCE], environment) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_unseen_shell_ends_by_the_signal_that_its_caller_sends(
    stand: Stand, number: int, wait_for: Callable[..., object]
) -> None:
    environment = {**stand.stage.recorded, "FLIGHTREC_SESSION": "nonsense"}
    words = ["/bin/bash", "-c", "echo $$; exec sleep 60"]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        shell = int(output.readline())

    process.send_signal(number)

    assert process.wait(PATIENCE_S) == -number
    wait_for(lambda: not psutil.pid_exists(shell), what="the shell's end")


@OPTIONS
@pytest.mark.parametrize("count", [6, 9, 10, 11, 12, 16])
def test_a_shell_with_few_descriptors_is_as_a_plain_one(
    stand: Stand, option: str, count: int
) -> None:
    words = ["prlimit", f"--nofile={count}", "/bin/bash", option, "echo x; echo y >&2; exit 3"]

    assert stand.stage.run(words) == stand.stage.run(words, stand.stage.plain)


@OPTIONS
def test_a_helper_that_dies_at_once_takes_the_shell_along(
    stand: Stand, option: str, tmp_path: Path
) -> None:
    environment = with_helper(stand, tmp_path, b"#!/bin/sh\nkill -9 $$\n")
    trace = tmp_path / "trace"

    seen = stand.stage.run(["/bin/bash", option, f"echo ran >{trace}"], environment)

    assert seen.status == -signal.SIGKILL  # whoever kills the helper means the shell
    assert not trace.exists()


@contextlib.contextmanager
def profile(stand: Stand, text: str) -> Iterator[None]:
    path = Path(stand.stage.plain["HOME"]) / ".bash_profile"
    path.write_text(text)
    yield
    path.unlink()


NO_EPOLL = {"x86_64": 291, "aarch64": 20}[platform.machine()]
"""epoll_create1"""
NO_PROCESS = {"x86_64": (56, 57, 58, 435), "aarch64": (220, 435)}[platform.machine()]
"""clone, fork, vfork, clone3"""


def sandbox(*forbidden: int) -> list[str]:
    """Return the words that start a program for which these system calls fail."""
    text = (
        "import os, platform, sys; sys.path.insert(0, sys.argv[1]); import no_sockets;"
        f"no_sockets.FORBIDDEN = {{platform.machine(): {forbidden}}};"
        "no_sockets.forbid_connections(); os.execvp(sys.argv[2], sys.argv[2:])"
    )
    return [sys.executable, "-c", text, str(NO_SOCKETS.parent)]


def slow_helper(stand: Stand, folder: Path) -> dict[str, str]:
    """Return an environment whose helper takes a second to begin."""
    helper = folder / "helper"
    helper.write_text(
        f"#!{sys.executable}\nimport os, sys, time\ntime.sleep(1)\n"
        f"os.execv({str(stand.stage.session.placed.helper)!r}, sys.argv)\n"
    )
    helper.chmod(0o700)
    library = stand.stage.session.placed.helper.with_name(BASH_DOOR_NAME)
    shutil.copy(library, folder / BASH_DOOR_NAME)
    return {**stand.stage.recorded, "FLIGHTREC_HELPER": str(helper)}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_that_comes_before_the_helper_listens_reaches_the_shell(
    stand: Stand, number: signal.Signals, tmp_path: Path, wait_for: Callable[..., object]
) -> None:
    """With bash's own handlers it would be lost, and without them it would end what is caught."""
    environment = slow_helper(stand, tmp_path)
    text = f"for ((i = 0; i < 600; i++)); do read -t 0.1 <>{tmp_path}/fifo; done; exit 3"
    os.mkfifo(tmp_path / "fifo")
    with profile(stand, f"trap 'exit 9' {number.name[3:]}\n"):
        process = subprocess.Popen(["/bin/bash", "-lc", text], env=environment)
        wait_for(lambda: psutil.Process(process.pid).name() != "bash", what="the helper")
        process.send_signal(number)

        assert process.wait(PATIENCE_S) == 9


@OPTIONS
@pytest.mark.parametrize("ignoring", ["", "trap '' QUIT TERM\n"], ids=["bash", "profile"])
@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM])
def test_what_a_shell_ignores_still_reaches_what_it_becomes(
    stand: Stand, option: str, ignoring: str, number: int
) -> None:
    """bash itself ignores SIGQUIT, and gives its programs back what it was started with."""
    words = ["/bin/bash", option, "trap - QUIT TERM; ulimit -c 0; exec sh -c 'echo $$; sleep 60'"]
    with profile(stand, ignoring):
        process = subprocess.Popen(
            words, env=stand.stage.recorded, stdout=subprocess.PIPE, start_new_session=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)

        assert process.wait(PATIENCE_S) == -number

    process.stdout.close()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@OPTIONS
def test_a_helper_that_may_not_wait_for_streams_leaves_them_to_the_shell(
    stand: Stand, option: str
) -> None:
    """Nobody would read what the shell has taken over."""
    words = [*sandbox(NO_EPOLL), "/bin/bash", option, ONCE]
    environment = {**stand.stage.recorded, "PATH": stand.stage.plain["PATH"]}

    assert stand.stage.run(words, environment) == stand.stage.run(words, stand.stage.plain)
    assert only_command(stand.runs(words, environment)).exit == 3


@OPTIONS
def test_two_names_of_one_pipe_are_one_stream(stand: Stand, option: str, tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("one", "other")]
    os.mkfifo(names[0])
    os.link(*names)
    text = f'cat {names[0]} & exec /bin/bash {option} "$1" >{names[0]} 2>{names[1]}'
    words = ["/bin/sh", "-c", text, "sh", "echo a; echo b >&2; git statsu; echo c; exit 3"]
    environment = {**stand.stage.recorded, "PATH": stand.stage.plain["PATH"]}

    assert stand.stage.run(words, environment) == stand.stage.run(words, stand.stage.plain)


@OPTIONS
def test_a_shell_that_can_start_no_process_is_as_a_plain_one(stand: Stand, option: str) -> None:
    """bash would say so, and try again for half a minute."""
    words = [*sandbox(*NO_PROCESS), "/bin/bash", "--noprofile", option, "echo x; exit 3"]
    environment = {**stand.stage.recorded, "PATH": stand.stage.plain["PATH"]}

    assert stand.stage.run(words, environment) == stand.stage.run(words, stand.stage.plain)


def test_a_job_of_the_profile_s_is_still_the_shell_s_own(stand: Stand) -> None:
    profile = Path(stand.stage.plain["HOME"]) / ".bash_profile"
    profile.write_text("sleep 0.1 >/dev/null 2>&1 &\n")
    words = ["/bin/bash", "-lc", "wait $!; echo $?; wait; exit 3"]

    recorded, plain = (stand.stage.run(words, stand.stage.plain) for _ in range(2))
    run = only_command(stand.runs(words))
    profile.unlink()

    assert recorded == plain
    assert (run.starting.source, run.exit) == (Source.ENV, 3)


@pytest.mark.parametrize("loads", [True, False], ids=["loads", "loads no builtins"])
@pytest.mark.parametrize("text", ["git statsu | cat; exit 3", "exit 3"])
def test_an_exit_trap_of_the_profile_s_is_still_there(
    stand: Stand, text: str, *, loads: bool
) -> None:
    environment = stand.stage.recorded if loads else without_library(stand.stage)
    words = ["/bin/bash", "-lc", text]
    with profile(stand, "trap 'echo \"was $?\"' EXIT\n"):
        seen = stand.stage.run(words, environment)

        assert seen == stand.stage.run(words, stand.stage.plain)
        assert seen.output == b"was 3\n"


@OPTIONS
def test_a_shell_without_the_shell_s_own_descriptors_is_seen(stand: Stand, option: str) -> None:
    closed = "exec /bin/bash {} 'cat; ls /proc/self/fd; exit 3' <&- 2>&-"
    words = ["sh", "-c", closed.format(option)]
    environment = {**stand.stage.recorded, "PATH": stand.stage.plain["PATH"]}

    assert stand.stage.run(words, environment) == stand.stage.run(words, stand.stage.plain)
    assert only_command(stand.runs(words, environment)).exit == 3


def test_a_person_s_functions_may_have_the_names_of_what_we_call(stand: Stand) -> None:
    home = Path(stand.stage.plain["HOME"])
    names = ("builtin", "enable", "export", "unset", "return", "shopt", "trap", "exec")
    definitions = "".join(f"{name}() {{ echo {name} >&2; }}\n" for name in names[1:])
    (home / ".bash_profile").write_text(definitions)
    words = ["/bin/bash", "-lc", "git statsu; echo x"]

    recorded = stand.stage.run(words)
    plain = stand.stage.run(words, stand.stage.plain)
    (home / ".bash_profile").unlink()

    assert recorded == plain


@pytest.mark.parametrize("options", ["-kc", "-lkc"])
def test_a_private_text_under_keyword_is_as_in_a_plain_shell(stand: Stand, options: str) -> None:
    """`export NAME=VALUE` then has no argument, and shows all that is exported."""
    words = ["/bin/bash", options, " echo x; exit 3"]

    assert stand.stage.run(words) == stand.stage.run(words, stand.stage.plain)


@OPTIONS
@pytest.mark.parametrize("name", ["_flightrec_door", ":"])
def test_an_exported_function_sees_nothing_of_what_we_call(
    stand: Stand, option: str, name: str
) -> None:
    function = {f"BASH_FUNC_{name}%%": "() { echo called\n}"}
    words = ["/bin/bash", option, "git statsu; exit 3"]
    recorded, plain = ({**e, **function} for e in (stand.stage.recorded, stand.stage.plain))

    assert stand.stage.run(words, recorded) == stand.stage.run(words, plain)
    assert only_command(stand.runs(words, recorded)).exit == 3


@OPTIONS
@pytest.mark.parametrize("limit", ["data", "as"])
def test_a_shell_with_no_memory_for_the_helper_is_unseen(
    stand: Stand, option: str, limit: str
) -> None:
    """The system would end the process that becomes it."""
    words = ["prlimit", f"--{limit}={8_000_000}", "/bin/bash", "--noprofile", option, "exit 3"]

    assert stand.stage.run(words).status == 3


@OPTIONS
def test_the_first_process_of_a_namespace_is_unseen(stand: Stand, option: str) -> None:
    """Its signals are others, and it has to care for all orphans."""
    text = "trap 'kill -TERM $$; echo still here' EXIT; test $$ = 1; echo $?; kill -TERM $$"
    words = ["unshare", "--user", "--pid", "--fork", "/bin/bash", option, text]
    if stand.stage.run([*words[:4], "true"], stand.stage.plain).status != 0:
        pytest.skip("no namespaces here")
    environment = {**stand.stage.recorded, "PATH": stand.stage.plain["PATH"]}

    assert stand.stage.run(words, environment) == stand.stage.run(words, stand.stage.plain)


def test_the_library_is_for_every_libc() -> None:
    """It names none, and takes nothing that has a version."""
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")

    said = subprocess.run(
        ["readelf", "--dynamic", "--dyn-syms", "--wide", bash_library()],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
    ).stdout

    assert "(NEEDED)" not in said
    assert "@" not in said


def test_a_library_of_another_release_is_not_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody could build ours: what it says, the helper need not understand."""

    def find(name: str) -> Path:
        return find_resource(name if name != BASH_DOOR_NAME else f"{name}.missing")

    helper()
    library = place_files(find_paths(str(home))).folder / BASH_DOOR_NAME
    assert library.is_file()
    monkeypatch.setattr("flightrec.agent_session.find_resource", find)
    place_files(find_paths(str(home)))

    assert not library.exists()
