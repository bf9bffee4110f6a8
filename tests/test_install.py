"""What shells load, the line in rc files, and that all of it can be taken back."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from daemon_process import flightrec, is_alive, wait_until
from flightrec import __version__
from flightrec.agent_files import Kind
from flightrec.client import request
from flightrec.commands.init import shell_code
from flightrec.errors import FlightrecError, NoDaemonError
from flightrec.export_rows import ExportRow, note
from flightrec.installation import data_folder, first_line, rc_line
from flightrec.paths import Paths, find_paths, find_resource, make_private_folder
from flightrec.store import Store
from flightrec.typed_shell import PROMPT, TypedShell, find_shells

SHELLS = find_shells()
BASH_LINE = rc_line("bash").encode()
BASH_FIRST = first_line("bash").encode()

HOSTILE = (
    "/tmp/with blank",
    "/tmp/it's",
    "/tmp/'''",
    '/tmp/"quoted"',
    "/tmp/$(touch pwned)",
    "/tmp/`touch pwned`",
    "/tmp/$HOME",
    "/tmp/a;touch pwned",
    "/tmp/a\\b!!{x,y}*?[z]~",
    "/tmp/#not a comment",
    "/tmp/\udcff",
    "/tmp/ünïcödé",
)


@pytest.fixture
def paths(home: Path) -> Iterator[Paths]:
    """A home in which no daemon is left running."""
    found = find_paths(str(home))
    yield found
    with contextlib.suppress(FlightrecError):
        request(found, "stop", autostart=False)


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder, with its content's digest."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


# --- init ------------------------------------------------------------------------------------


def test_what_a_shell_evaluates_is_static_but_for_three_quoted_paths() -> None:
    """T14, as a golden text."""
    helper, command = Path("/opt/it's/helper"), Path("/home/me/my venv/bin/flightrec")
    assert shell_code(helper, command, Path("/opt/flightrec.zsh")) == (
        f"# flightrec {__version__}\n"
        "__flightrec_helper='/opt/it'\"'\"'s/helper'\n"
        "__flightrec_command='/home/me/my venv/bin/flightrec'\n"
        'if [ -x "$__flightrec_helper" ] && [ -r /opt/flightrec.zsh ];'
        " then . /opt/flightrec.zsh; fi\n"
    )


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("folder", HOSTILE)
def test_a_hostile_path_is_a_word_like_any_other(shell: str, folder: str, tmp_path: Path) -> None:
    """T14: both shells, and zsh with quotes that are doubled in it."""
    helper, script = Path(folder, "helper"), Path(folder, "flightrec.sh")
    code = shell_code(helper, helper, script)
    prelude = "setopt rc_quotes extended_glob; " if shell == "zsh" else "set -u; "
    print_it = 'printf "%s\\n%s" "$__flightrec_helper" "$__flightrec_command"'
    done = subprocess.run(
        [shell, "-c", f'{prelude}eval "$CODE"; {print_it}'],
        env={"PATH": os.environ["PATH"], "CODE": code},
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert done.stdout == os.fsencode(f"{helper}\n{helper}")
    assert done.stderr == b""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("character", ["\n", "\t", "\x1b", "\x7f", "\r"])
def test_a_path_with_a_control_character_is_refused(character: str) -> None:
    with pytest.raises(FlightrecError, match="control characters"):
        shell_code(Path(f"/opt/a{character}b"), Path("/x"), Path("/y"))


@pytest.mark.parametrize("shell", SHELLS)
def test_init_says_where_this_installation_lies(shell: str, home: Path) -> None:
    done = flightrec("init", shell, home=home)
    assert done.returncode == 0
    assert f"__flightrec_helper={find_resource('flightrec-helper')}\n" in done.stdout
    assert f". {find_resource(f'flightrec.{shell}')}; fi" in done.stdout
    assert subprocess.run([shell, "-n", "-c", done.stdout], check=False).returncode == 0


def test_init_of_an_unknown_shell_prints_nothing_to_evaluate(home: Path) -> None:
    done = flightrec("init", "fish", home=home)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_code_is_silent_once_its_files_are_gone(shell: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    code = shell_code(gone, gone, gone)
    done = subprocess.run(
        [shell, "-c", f"set -e\n{code}\necho on"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "on\n", "")


# --- install and uninstall -------------------------------------------------------------------


def test_install_adds_a_line_to_the_rc_files_that_are_there(home: Path, paths: Paths) -> None:
    (home / ".bashrc").write_text("alias ll='ls -l'\n")
    done = flightrec("install", "--yes", home=home, env={"SHELL": "/bin/sh"})
    assert done.returncode == 0, done.stderr
    assert (home / ".bashrc").read_bytes() == b"alias ll='ls -l'\n" + BASH_LINE + b"\n"
    assert not (home / ".zshrc").exists()
    assert str(paths.state) in done.stdout
    assert "secrets are taken out" in done.stdout


def test_install_makes_the_rc_file_of_the_login_shell(home: Path) -> None:
    flightrec("install", "--yes", home=home, env={"SHELL": "/bin/bash"})
    assert (home / ".bashrc").read_bytes() == BASH_LINE + b"\n"


def test_installing_twice_changes_nothing_more(home: Path) -> None:
    (home / ".bashrc").write_text("x=1\n")
    flightrec("install", "--yes", home=home)
    before = tree(home)
    done = flightrec("install", "--yes", home=home)
    assert "Installed already" in done.stdout
    assert tree(home) == before


def test_install_asks_and_takes_no_for_an_answer(home: Path) -> None:
    (home / ".bashrc").write_text("x=1\n")
    with contextlib.closing(TypedShell("bash", "", {**os.environ, "HOME": str(home)})) as shell:
        shown = shell.answer(f"{sys.executable} -m flightrec install", "Add it? [y/N]", "n")
    assert "Nothing was changed." in shown
    assert tree(home) == {".bashrc": hashlib.sha256(b"x=1\n").hexdigest()}


def install_and_answer(home: Path, *answers: str) -> str:
    """Run ``flightrec install`` on a terminal; return what it printed."""
    child = pexpect.spawn(
        sys.executable,
        ["-m", "flightrec", "install"],
        env={**os.environ, "HOME": str(home)},
        encoding="utf-8",
        timeout=60,
    )
    printed = ""
    for answer in answers:
        child.expect(r"Add it.*\[[yYnN/]+\] ")
        printed += str(child.before)
        child.sendline(answer)
    child.expect(pexpect.EOF)
    printed += str(child.before)
    child.close()
    return printed


@pytest.mark.parametrize("answer", ["", "y", "YES"])
def test_install_offers_the_proxy_and_a_bare_enter_takes_it(answer: str, home: Path) -> None:
    (home / ".bashrc").write_text("x=1\n")
    printed = install_and_answer(home, "y", answer)
    assert "terminal proxy" in printed
    assert "at its beginning" in printed
    lines = (home / ".bashrc").read_bytes().splitlines()
    assert lines == [BASH_FIRST, b"x=1", BASH_LINE]


def test_install_leaves_the_proxy_out_where_somebody_says_no(home: Path) -> None:
    (home / ".bashrc").write_text("x=1\n")
    install_and_answer(home, "y", "n")
    assert (home / ".bashrc").read_bytes().splitlines() == [b"x=1", BASH_LINE]


def test_install_does_not_take_the_proxy_for_granted(home: Path) -> None:
    (home / ".bashrc").write_text("x=1\n")
    flightrec("install", "--yes", home=home)
    assert BASH_FIRST not in (home / ".bashrc").read_bytes()
    assert (data_folder(home) / "proxy.bash").exists()


def test_tail_and_no_tail_change_their_mind_about_the_proxy(home: Path) -> None:
    (home / ".bashrc").write_text("x=1\n")
    flightrec("install", "--yes", home=home)
    flightrec("install", "--yes", "--tail", home=home)
    assert (home / ".bashrc").read_bytes().splitlines() == [BASH_FIRST, b"x=1", BASH_LINE]
    assert "Installed already" in flightrec("install", "--yes", "--tail", home=home).stdout
    flightrec("install", "--yes", "--no-tail", home=home)
    assert (home / ".bashrc").read_bytes().splitlines() == [b"x=1", BASH_LINE]


def test_install_does_not_guess_where_nobody_can_be_asked(home: Path) -> None:
    (home / ".bashrc").write_text("x=1\n")
    done = flightrec("install", home=home)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert (home / ".bashrc").read_text() == "x=1\n"


def test_a_linked_rc_file_stays_a_link(home: Path) -> None:
    dotfiles = home / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "bashrc").write_text("x=1\n")
    (home / ".bashrc").symlink_to("dotfiles/bashrc")
    flightrec("install", "--yes", home=home)
    assert (home / ".bashrc").is_symlink()
    assert BASH_LINE in (dotfiles / "bashrc").read_bytes()


def test_a_linked_rc_file_outside_the_home_is_left_alone(home: Path, tmp_path: Path) -> None:
    (tmp_path / "bashrc").write_text("x=1\n")
    (home / ".bashrc").symlink_to(tmp_path / "bashrc")
    done = flightrec("install", "--yes", home=home)
    assert done.returncode == 1
    assert "leads out of" in done.stderr
    assert (tmp_path / "bashrc").read_text() == "x=1\n"


@pytest.mark.parametrize("tail", ["--tail", "--no-tail"])
@pytest.mark.parametrize(
    "text", [b"x=1\n", b"x=1", b"", b"x=1\r\n", b"x=1\n\n", b"\xff\xfe odd bytes"]
)
def test_uninstall_gives_back_the_rc_file_to_the_byte(text: bytes, tail: str, home: Path) -> None:
    (home / ".bashrc").write_bytes(text)
    flightrec("install", "--yes", tail, home=home)
    assert BASH_LINE in (home / ".bashrc").read_bytes()
    done = flightrec("uninstall", "--yes", home=home)
    assert done.returncode == 0, done.stderr
    assert (home / ".bashrc").read_bytes() == text
    assert not data_folder(home).exists()


def test_uninstall_leaves_what_was_written_into_an_rc_file_since(home: Path) -> None:
    (home / ".bashrc").write_text("before\n")
    flightrec("install", "--yes", home=home)
    with (home / ".bashrc").open("a") as file:
        file.write("after\n")
    flightrec("uninstall", "--yes", home=home)
    assert (home / ".bashrc").read_text() == "before\nafter\n"


@pytest.mark.parametrize("tail", ["--tail", "--no-tail"])
def test_uninstall_deletes_an_rc_file_that_was_ours_alone(tail: str, home: Path) -> None:
    flightrec("install", "--yes", tail, home=home, env={"SHELL": "/bin/bash"})
    flightrec("uninstall", "--yes", home=home, env={"SHELL": "/bin/bash"})
    assert not (home / ".bashrc").exists()


def test_uninstall_removes_blocks_from_memory_files(home: Path, paths: Paths) -> None:
    memory = home / "project" / "CLAUDE.md"
    memory.parent.mkdir()
    memory.write_text("mine\n<!-- flightrec:begin -->\nrule\n<!-- flightrec:end -->\n")
    make_private_folder(paths.state)
    with contextlib.closing(Store.open(paths.database)) as store, store.transaction() as change:
        note(change, ExportRow(memory, "/x", "claude", Kind.MEMORY, home))
    done = flightrec("uninstall", "--yes", home=home)
    assert done.returncode == 0, done.stderr
    assert str(memory) in done.stdout
    assert memory.read_text() == "mine\n"


def test_uninstall_keeps_the_data_unless_told_to_purge(home: Path, paths: Paths) -> None:
    flightrec("install", "--yes", home=home, env={"SHELL": "/bin/bash"})
    pid = request(paths, "ping")["pid"]
    flightrec("uninstall", "--yes", home=home)
    wait_until(lambda: not is_alive(pid))
    assert paths.database.exists()
    flightrec("uninstall", "--purge", "--yes", home=home)
    assert [path for path in home.rglob("*") if not path.is_dir()] == []


def test_uninstall_where_nothing_is_says_so(home: Path) -> None:
    done = flightrec("uninstall", "--yes", home=home)
    assert (done.returncode, done.stdout) == (0, "flightrec has written nothing here.\n")


def test_a_copied_file_that_somebody_changed_is_left_and_said_so(home: Path) -> None:
    flightrec("install", "--yes", home=home, env={"SHELL": "/bin/bash"})
    script = data_folder(home) / "flightrec.bash"
    script.write_text("# mine now\n")
    done = flightrec("uninstall", "--yes", home=home)
    assert done.returncode == 1
    assert f"{script} is not as installed; left" in done.stdout
    assert script.read_text() == "# mine now\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_new_shell_is_recorded_after_install_and_not_after_uninstall(
    shell: str, home: Path, paths: Paths
) -> None:
    """The relay of an open shell ends, too: it would start the daemon again."""
    (home / f".{shell}rc").write_text(f"PS1='{PROMPT}'\n")
    flightrec("install", "--yes", home=home)
    rc = f'. "{home}/.{shell}rc"\n'
    with contextlib.closing(TypedShell(shell, rc, {**os.environ, "HOME": str(home)})) as typed:
        typed.type(": first-canary")
        wait_until(lambda: _has_run(paths, "first-canary"))
        flightrec("uninstall", "--yes", home=home)
        assert typed.type("echo on") == "on\n"
    with pytest.raises(NoDaemonError):
        request(paths, "ping", autostart=False)


def _has_run(paths: Paths, text: str) -> bool:
    with contextlib.closing(Store.open_read_only(paths.database)) as store:
        return any(text in run.command for run in store.recent_runs())


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("gone", ["copy", "command"])
def test_an_rc_line_is_silent_where_what_it_loads_is_gone(
    shell: str, gone: str, home: Path
) -> None:
    """A deleted venv or copy never breaks a shell."""
    (home / f".{shell}rc").write_text("x=1\n")
    flightrec("install", "--yes", home=home)
    if gone == "copy":
        shutil.rmtree(data_folder(home))
    else:
        init = data_folder(home) / f"init.{shell}"
        lines = init.read_text().splitlines()
        lines[2] = "__flightrec_command=/nonexistent/flightrec"
        init.write_text("\n".join(lines) + "\n")
    rc = f'. "{home}/.{shell}rc"\n'
    with contextlib.closing(TypedShell(shell, rc, {**os.environ, "HOME": str(home)})) as typed:
        assert typed.before_first_prompt == ""
        assert typed.type("echo on") == "on\n"
