"""A real interactive shell on a terminal of its own, typed into as a person would.

For ``flightrec demo`` and the canary of ``flightrec doctor``: nothing but a real shell proves that
the integration works.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pexpect

from flightrec.errors import FlightrecError

PROMPT = "flightrec-ready$ "
"""What the shell shows when it waits for a line; ``show`` replaces it for people."""

PATIENCE_S = 30.0

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")

_RC = {
    "bash": (
        "PS1='{prompt}' PS2= PROMPT_COMMAND= HISTFILE=\nbind 'set enable-bracketed-paste off'\n"
    ),
    "zsh": (
        "PS1='{prompt}' PS2= RPS1= HISTFILE=\n"
        "unsetopt prompt_cr prompt_sp\n"
        "unset zle_bracketed_paste\n"
    ),
}
"""Nothing but the prompt on the screen, and no history file."""


def find_shells() -> list[str]:
    """Return which of bash and zsh are installed."""
    return [shell for shell in _RC if shutil.which(shell)]


class TypedShell:
    """An interactive shell that reads ``rc`` instead of the person's own start-up files."""

    def __init__(
        self, shell: str, rc: str, environment: Mapping[str, str], cwd: Path | None = None
    ) -> None:
        self.shell = shell
        self._folder = tempfile.TemporaryDirectory(prefix="flightrec-shell-")
        name = {"bash": "bashrc", "zsh": ".zshrc"}[shell]
        text = _RC[shell].format(prompt=PROMPT) + rc
        Path(self._folder.name, name).write_bytes(os.fsencode(text))
        words = {
            "bash": ["--noprofile", "--rcfile", f"{self._folder.name}/{name}", "-i"],
            "zsh": ["-d", "-i"],
        }[shell]
        unwanted = ("PROMPT_COMMAND", "PS0", "BASH_ENV", "ENV", "FLIGHTREC_OFF", "ZDOTDIR")
        kept = {name: value for name, value in environment.items() if name not in unwanted}
        self._process = pexpect.spawn(
            shell,
            words,
            env={**kept, "TERM": "xterm", "ZDOTDIR": self._folder.name},
            cwd=None if cwd is None else str(cwd),
            dimensions=(24, 400),
            encoding="utf-8",
            codec_errors="replace",
            timeout=PATIENCE_S,
        )
        self.before_first_prompt = self._wait_for_prompt()

    def type(self, line: str) -> str:
        """Type a line, wait for the next prompt, and return what the terminal showed after it.

        Raises FlightrecError where no prompt comes back.
        """
        self._process.sendline(line)
        shown = self._wait_for_prompt()
        _, _, output = shown.partition(line)  # the echo of what was typed
        return output.lstrip("\n")

    def answer(self, line: str, question: str, answer: str) -> str:
        """Type a line, and an answer once the question is there; return what was shown after it."""
        self._process.sendline(line)
        try:
            self._process.expect_exact(question)
        except (pexpect.EOF, pexpect.TIMEOUT):
            raise FlightrecError(f"{line} did not ask {question!r}") from None
        return self.type(answer)

    def _wait_for_prompt(self) -> str:
        try:
            self._process.expect_exact(PROMPT)
        except (pexpect.EOF, pexpect.TIMEOUT):
            raise FlightrecError(
                f"{self.shell} showed no prompt within {PATIENCE_S:.0f} s"
            ) from None
        return clean(self._process.before or "")

    def close(self) -> None:
        """End the shell as a closed terminal does."""
        self._process.close(force=True)
        self._folder.cleanup()


def clean(text: str) -> str:
    """Return what a terminal made of these bytes, without colours and cursor movements."""
    lines = _ESCAPE.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
