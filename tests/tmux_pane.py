"""A shell in a pane of tmux, and a person at a terminal that shows it."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pexpect
import pytest

from typed_shell import PROMPT, Rc, ShellMaker

LIMIT_S = 60.0
TMUX = shutil.which("tmux") or "tmux"
COLUMNS, ROWS = 90, 24
READY = re.escape(PROMPT.rstrip()) + r"\Z"
"""A prompt with nothing typed behind it is the last line."""


class Pane:
    """``type`` a line and wait for the next prompt; ``screen`` is what is shown then."""

    def __init__(
        self,
        kind: str,
        maker: ShellMaker,
        rc: Rc | None = None,
        *,
        env: Mapping[str, str] | None = None,
        ready: str = READY,
    ) -> None:
        self.kind = kind
        self._ready = ready
        self._folder = tempfile.mkdtemp(prefix="fr-", dir="/tmp")
        self.words = maker.write_rc(kind, rc or Rc())
        # The server takes all of it, and PATH from whoever starts a shell there.
        self._env = {**maker.environment(kind), **(env or {})}
        self._home = maker.home
        self._client: pexpect.spawn[bytes] | None = None

    def open(self) -> None:
        """Start a server with one shell, and show it; the shell is at its first prompt."""
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        self.tmux("new-session", "-d", "-s", "main", *size, "-c", str(self._home), *self.words)
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("set-option", "-g", "escape-time", "0")
        self._client = pexpect.spawn(
            TMUX,
            ["-u", "-S", self.socket, "attach"],
            env=self._env,
            timeout=LIMIT_S,
            dimensions=(ROWS, COLUMNS),
        )
        self._reader = threading.Thread(target=_drain, args=(self._client.child_fd,), daemon=True)
        self._reader.start()
        self.expect(self._ready)

    @property
    def socket(self) -> str:
        return f"{self._folder}/socket"

    def tmux(self, *words: str) -> str:
        """Run a tmux command; return what it prints."""
        command = [TMUX, "-u", "-S", self.socket, "-f", "/dev/null", *words]
        done = subprocess.run(
            command, env=self._env, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def format(self, text: str) -> str:
        """Return what tmux says for a format."""
        return self.tmux("display-message", "-p", "-t", "main", text).strip()

    def close(self) -> None:
        subprocess.run([TMUX, "-S", self.socket, "kill-server"], capture_output=True, check=False)
        if self._client is not None:
            self._reader.join(LIMIT_S)
            self._client.close(force=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    # ---- keys ----

    def press(self, keys: str) -> None:
        """Press keys at the person's terminal."""
        assert self._client is not None
        os.write(self._client.child_fd, keys.encode())

    def press_later(self, keys: str) -> None:
        """Press keys in another second than the ones before: tmux counts in seconds."""
        before = int(time.time())
        self.wait(lambda: int(time.time()) > before, "the next second")
        self.press(keys)

    def type(self, line: str, until: str | None = None) -> str:
        """Type a line and Enter; wait for what is to appear, the next prompt by default."""
        before = self.screen()
        self.press(line)
        self.wait(lambda: self.screen() != before or not line.strip(), f"{line!r} to be typed")
        before = self.screen()
        self.press("\r")
        self.wait(lambda: self.screen() != before, f"Enter behind {line!r}")
        self.expect(until or self._ready)
        return self.screen()

    # ---- screens ----

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "main").rstrip()

    def expect(self, pattern: str) -> None:
        """Wait until the screen matches."""
        self.wait(lambda: re.search(pattern, self.screen()), repr(pattern))

    def wait(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited {LIMIT_S} s in vain for {what}:\n{self.screen()}")
            time.sleep(0.02)


def _drain(terminal: int) -> None:
    """Look at what is shown, so that tmux is not held up."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass


class PaneMaker:
    """Opens panes in one home and closes them all."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.shells = ShellMaker(home)
        self._opened: list[Pane] = []

    def __call__(
        self,
        kind: str,
        rc: Rc | None = None,
        *,
        env: Mapping[str, str] | None = None,
        ready: str = READY,
    ) -> Pane:
        pane = Pane(kind, self.shells, rc, env=env, ready=ready)
        self._opened.append(pane)
        pane.open()
        return pane

    def close(self) -> None:
        for pane in self._opened:
            pane.close()
