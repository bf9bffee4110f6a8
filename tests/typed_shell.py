"""A real interactive shell on a terminal, typed into key by key."""

import contextlib
import os
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path

import pexpect
import pytest

import helper_builds

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "shell-integration"
PROMPT = "@@> "
LIMIT_S = 20
PATIENCE_MS = "3000"
"""What a test is about must not depend on how busy its machine is; tests of the real deadlines set
``DEADLINES``."""
IN_STEP = "echo 'in' 'step'"
"""What ``get_in_step`` types."""
DEADLINES = {"FLIGHTREC_PATIENCE_MS": ""}

BASH = pytest.param("bash", marks=pytest.mark.skipif(not shutil.which("bash"), reason="no bash"))
ZSH = pytest.param("zsh", marks=pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh"))
BOTH = (BASH, ZSH)


@dataclass
class Rc:
    """What a person's rc file holds, before and after our line."""

    before: str = ""
    after: str = ""
    ours: str | None = None
    """The line that loads us; None is ``source``, empty is none."""


def source_line(kind: str, script: Path | None = None) -> str:
    """Return the rc line that loads the integration of the source tree with the built helper."""
    helper_builds.helper()
    return f"source '{script or SCRIPTS / f'flightrec.{kind}'}'"


@dataclass
class TypedShell:
    """``type`` a line and get what the terminal shows until the next prompt."""

    kind: str
    child: "pexpect.spawn[str]" = field(repr=False)

    @property
    def pid(self) -> int:
        assert self.child.pid is not None
        return self.child.pid

    def type(self, line: str) -> str:
        """Type a line and Enter; return what is shown before the next prompt."""
        self.child.send(line + "\r")
        return self.until_prompt()

    def until_prompt(self) -> str:
        """Return what is shown before the next prompt."""
        self.child.expect_exact(PROMPT)
        return str(self.child.before).replace("\r\n", "\n")

    def get_in_step(self) -> None:
        """Have as many prompts behind us as lines, after keys that may have brought a prompt."""
        self.child.send(f"\r{IN_STEP}\r")
        self.child.expect_exact("in step")
        self.until_prompt()

    def send(self, keys: str) -> None:
        """Press keys, without waiting for anything."""
        self.child.send(keys)

    def until(self, text: str) -> None:
        """Wait until the terminal shows a text."""
        self.child.expect_exact(text)

    def runs_a_job(self) -> bool:
        """Whether the terminal belongs to a job now, and not to the shell."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return fields[5] != str(self.pid)

    def leave(self, command: str = "exit") -> int | None:
        """Type the last command; return the shell's exit status."""
        self.child.send(command + "\r")
        self.child.expect(pexpect.EOF)
        self.child.close()
        return self.child.exitstatus

    def hang_up(self) -> None:
        """Take the terminal away."""
        self.child.close(force=True)


class ShellMaker:
    """Starts shells in one home and ends them all."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.shells: list[TypedShell] = []

    def __call__(
        self,
        kind: str,
        rc: Rc | None = None,
        *,
        env: dict[str, str] | None = None,
        wait: bool = True,
    ) -> TypedShell:
        """Start a shell; it is at its first prompt."""
        command = self.write_rc(kind, rc or Rc())
        child = pexpect.spawn(
            command[0],
            command[1:],
            env={**self.environment(kind), **(env or {})},
            cwd=str(self.home),
            encoding="utf-8",
            codec_errors="surrogateescape",
            echo=False,
            timeout=LIMIT_S,
            dimensions=(40, 200),
        )
        child.delaybeforesend = None
        shell = TypedShell(kind, child)
        self.shells.append(shell)
        if wait:
            shell.until_prompt()
        return shell

    def write_rc(self, kind: str, rc: Rc) -> list[str]:
        """Write the rc file; return the shell's command line."""
        ours = source_line(kind) if rc.ours is None else rc.ours
        common = f"PS1='{PROMPT}'\nHISTSIZE=1000\n__flightrec_command=/nonexistent\n"
        if kind == "bash":
            keys = "bind 'set enable-bracketed-paste off' 'set horizontal-scroll-mode off'\n"
            text = f"{common}HISTFILE=/dev/null\n{keys}{rc.before}\n{ours}\n{rc.after}\n"
            (self.home / "rc.bash").write_text(text)
            return ["bash", "--noprofile", "--rcfile", str(self.home / "rc.bash"), "-i"]
        text = f"{common}unsetopt zle prompt_sp\n{rc.before}\n{ours}\n{rc.after}\n"
        (self.home / ".zshrc").write_text(text)
        return ["zsh", "-d", "-i"]

    def environment(self, kind: str) -> dict[str, str]:
        """Return an environment of nothing but what a shell needs."""
        env = {
            "HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "INPUTRC": "/dev/null",
            "FLIGHTREC_PATIENCE_MS": PATIENCE_MS,
        }
        return {**env, "ZDOTDIR": str(self.home)} if kind == "zsh" else env

    def close(self) -> None:
        """End all shells, and let go on what a test has suspended."""
        for shell in self.shells:
            shell.child.close(force=True)
        while _stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(_stopped.pop(), signal.SIGCONT)


def relay_of(home: Path, pid: int) -> int:
    """Return the pid of the relay that serves the shell ``pid``."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        is_relay = words[1:2] == [b"relay"] and words[3:4] == [str(pid).encode()]
        if is_relay and b"HOME=" + os.fsencode(home) + b"\0" in environment:
            return int(entry.name)
    raise LookupError(f"no relay for {pid}")


def is_alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


_stopped: list[int] = []


def stop(pid: int) -> None:
    """Suspend a process, and wait until it is."""
    _stopped.append(pid)
    os.kill(pid, signal.SIGSTOP)
    while Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
        pass
