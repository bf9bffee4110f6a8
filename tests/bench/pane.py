"""What the relay's question to tmux adds to a command that fails, and to one that does not."""

import contextlib
import shutil
import statistics
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.interactive import recording_home
from tests.bench.proxy import Terminal, environment, in_turns, loading, shell_words
from tests.bench.table import Row

TITLE = "A command in tmux, from Enter to the next prompt"

ROUNDS = 150
SHOWN = b"@PROMPT@"
NOBODY, MESSAGES, PANE = "without flightrec", "messages only", "and the pane is asked"


@contextlib.contextmanager
def pane(socket: Path, words: list[str], env: Mapping[str, str]) -> Iterator[Terminal]:
    """Open a server of tmux's with one shell, and a terminal that shows it."""
    tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    terminal = Terminal([*tmux, "new-session", *words, ";", "set-option", "status", "off"], env)
    try:
        terminal.until(SHOWN)
        yield terminal
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
        terminal.close()


def milliseconds(terminal: Terminal, line: bytes) -> float:
    """Type a line; return how long it takes to the next prompt."""
    return terminal.run(line, SHOWN) * 1e3


def rows_for(kind: str) -> list[Row]:
    """Return the medians of one shell."""
    times: dict[tuple[bytes, str], list[float]] = {}
    with recording_home() as home, contextlib.ExitStack() as stack:
        opened = {}
        for name, script, more in (
            (NOBODY, "", {}),
            (MESSAGES, "flightrec", {"FLIGHTREC_NO_TAIL": "1"}),
            (PANE, "flightrec", {}),
        ):
            folder = home / name.replace(" ", "-")
            folder.mkdir()
            words = shell_words(kind, folder, loading(kind, script) if script else "")
            env = {**environment(folder), "HOME": str(home), **more}
            opened[name] = stack.enter_context(pane(folder / "tmux", words, env))
        for name in in_turns(list(opened), ROUNDS):
            for line in (b"false", b"true"):
                times.setdefault((line, name), []).append(milliseconds(opened[name], line))
    return [
        row_of(kind, line, name, times) for line in (b"false", b"true") for name in (MESSAGES, PANE)
    ]


def row_of(
    kind: str, line: bytes, name: str, times: Mapping[tuple[bytes, str], list[float]]
) -> Row:
    """Return what one way of recording adds to one command."""
    base = statistics.median(times[line, NOBODY])
    added = statistics.median(times[line, name]) - base
    bar = "≤ 20 ms" if (line, name) == (b"false", PANE) else ""
    note = f"{base:.2f} ms without flightrec"
    return Row(f"{kind}: added to `{line.decode()}`, {name}", added, "ms", bar, note)


def rows() -> list[Row]:
    """Return all figures."""
    if not shutil.which("tmux"):
        return []
    return [row for kind in ("bash", "zsh") if shutil.which(kind) for row in rows_for(kind)]
