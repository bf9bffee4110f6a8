"""Two shells in tmux, one plain and one inside the proxy, that get the same keys."""

import difflib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from flightrec.commands.init import shell_code
from flightrec.paths import find_resource
from helper_builds import helper
from proxied_shell import proxied, shell_in

LIMIT_S = 60.0
PROMPT = r"READY>\Z"
"""A prompt with nothing typed behind it is the last line."""

RC = {
    "bash": "PS1='READY> ' HISTFILE=/dev/null\n",
    "zsh": "PS1='READY> ' HISTFILE=\n",
}
PANES = ("plain", "inside")


class Twins:
    """``type`` something into both, and check that they go on looking the same."""

    def __init__(self, kind: str, *, env: Mapping[str, str] | None = None) -> None:
        self.kind = kind
        self._socket = tempfile.mkdtemp(prefix="fr-", dir="/tmp")
        self._terminals: dict[str, int] = {}
        self.folders = {pane: Path(self._socket, pane.ljust(6, "_")) for pane in PANES}
        self._more = dict(env or {})

    def open(self) -> None:
        """Start both; they are at their first prompts."""
        for pane in PANES:
            self._open(pane, self._more)
        self.expect(PROMPT)

    def _open(self, pane: str, more: dict[str, str]) -> None:
        folder = self.folders[pane]
        work = folder / "work"
        work.mkdir(parents=True)
        env = {
            "HOME": str(folder),
            "ZDOTDIR": str(folder),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            **more,
        }
        words = self._shell_words(pane, folder)
        size = ["-x", "90", "-y", "24"]
        variables = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        self.tmux("new-session", "-d", "-s", pane, *size, "-c", str(work), *variables, *words)
        self.tmux("set-option", "-t", pane, "status", "off")

    def _shell_words(self, pane: str, folder: Path) -> list[str]:
        text = RC[self.kind]
        if pane == "inside":
            script = find_resource(f"flightrec.{self.kind}")
            text += shell_code(helper(), Path("/nonexistent/flightrec"), script)
        if self.kind == "zsh":
            (folder / ".zshrc").write_text(text)
            words = ["zsh", "-d", "-i"]
        else:
            (folder / ".bashrc").write_text(text)
            words = ["bash", "--noprofile", "--rcfile", str(folder / ".bashrc"), "-i"]
        return proxied(words) if pane == "inside" else words

    def tmux(self, *words: str) -> str:
        """Run a tmux command; return what it prints."""
        command = ["tmux", "-S", f"{self._socket}/socket", "-f", "/dev/null", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def close(self) -> None:
        subprocess.run(
            ["tmux", "-S", f"{self._socket}/socket", "kill-server"],
            capture_output=True,
            check=False,
        )
        for descriptor in self._terminals.values():
            os.close(descriptor)
        shutil.rmtree(self._socket, ignore_errors=True)

    def _terminal(self, pane: str) -> int:
        """Return a descriptor of the terminal that a pane's shell has."""
        if pane not in self._terminals:
            pid = int(self.tmux("display-message", "-p", "-t", pane, "#{pane_pid}"))
            shell = pid if pane == "plain" else shell_in(pid)
            self._terminals[pane] = os.open(f"/proc/{shell}/fd/0", os.O_RDONLY | os.O_NOCTTY)
        return self._terminals[pane]

    # ---- keys ----

    def send(self, text: str) -> None:
        """Type a text, without Enter."""
        for pane in PANES:
            self.tmux("send-keys", "-l", "-t", pane, "--", text)

    def press(self, *names: str) -> None:
        """Press keys by tmux's names: ``Enter``, ``C-z``, ``Up``."""
        for pane in PANES:
            self.tmux("send-keys", "-t", pane, *names)

    def type(self, line: str, until: str = PROMPT) -> None:
        """Type a line and Enter; wait for what is to appear then, the next prompt by default."""
        before = [self.screen(pane) for pane in PANES]
        self.send(line)
        self._wait(lambda screen: screen not in before, f"{line!r} to be typed")
        self.press("Enter")
        self.expect(until)

    def resize(self, columns: int, rows: int) -> None:
        """Change both windows' size, and wait until the shells' terminals have it.

        tmux takes its time: a quarter of a second after the change before.
        """
        for pane in PANES:
            self.tmux("resize-window", "-t", pane, "-x", str(columns), "-y", str(rows))
        deadline = time.monotonic() + LIMIT_S
        for pane in PANES:
            while os.get_terminal_size(self._terminal(pane)) != (columns, rows):
                assert time.monotonic() < deadline, f"{pane}: not resized"
                time.sleep(0.01)

    # ---- screens ----

    def screen(self, pane: str) -> str:
        """What one pane shows, without what differs by nature."""
        text = self.tmux("capture-pane", "-p", "-t", pane).rstrip()
        return text.replace(str(self.folders[pane]), "~~")

    def expect(self, pattern: str) -> None:
        """Wait until both screens match."""
        self._wait(lambda screen: re.search(pattern, screen) is not None, repr(pattern))

    def _wait(self, is_met: Callable[[str], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        for pane in PANES:
            while not is_met(screen := self.screen(pane)):
                if time.monotonic() > deadline:
                    pytest.fail(f"{pane}: waited {LIMIT_S} s in vain for {what}:\n{screen}")
                time.sleep(0.02)

    def same(self, *ignore: str) -> str:
        """Check that both screens come to be the same, but for these patterns; return it."""
        deadline = time.monotonic() + LIMIT_S / 4
        while True:
            plain, inside = (_without(self.screen(pane), ignore) for pane in PANES)
            if plain == inside:
                return plain
            if time.monotonic() > deadline:
                lines = difflib.unified_diff(
                    plain.splitlines(), inside.splitlines(), "plain", "inside", lineterm=""
                )
                pytest.fail("the screens differ:\n" + "\n".join(lines))
            time.sleep(0.05)

    def same_word(self, form: str, expected: str | None = None) -> str:
        """Check that a format of tmux's comes to be the same for both panes; return it."""
        deadline = time.monotonic() + LIMIT_S / 4
        while True:
            plain, inside = (
                self.tmux("display-message", "-p", "-t", pane, form).strip() for pane in PANES
            )
            inside = inside.replace(str(self.folders["inside"]), str(self.folders["plain"]))
            if plain == inside and expected in (None, plain):
                return plain
            assert time.monotonic() < deadline, (plain, inside)
            time.sleep(0.05)


def _without(screen: str, patterns: tuple[str, ...]) -> str:
    for pattern in patterns:
        screen = re.sub(pattern, "…", screen)
    return screen
