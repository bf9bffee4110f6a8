"""Show the whole story in a throw-away home: three real shells, a real daemon, a real MEMORY.md."""

import argparse
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from flightrec.agent_places import claude_slug
from flightrec.client import request
from flightrec.commands.init import find_command, shell_code
from flightrec.commands.terminal import colour, one_line
from flightrec.errors import ExitCode, FlightrecError
from flightrec.lifecycle import wait_for_end
from flightrec.paths import HELPER_NAME, Paths, find_paths, find_resource
from flightrec.rulebook import Rulebook
from flightrec.rules import Rule, Status
from flightrec.store import Store
from flightrec.typed_shell import TypedShell, find_shells

HELP = "see it work: three real shells in a throw-away home, nothing of yours is touched"

EXAMPLES = (("flightrec demo", "takes about ten seconds and leaves nothing behind"),)

_T = TypeVar("_T")

STORIES = (("git", "gti", "status"), ("ls", "sl", "-l"))
"""Program, how it is mistyped, arguments: the first one that can be told on this machine is."""

PATIENCE_S = 30.0
"""For one step of the story to come true."""

COMMAND_LIMIT_S = 60.0
"""For one of our own commands, on a machine that is busy with other things."""

KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "USER", "LOGNAME", "TZ", "VIRTUAL_ENV")
"""All that the demonstration's shells get of the person's environment."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(_arguments: argparse.Namespace) -> int:
    """Tell the story; it fails where it does not come true."""
    shells = find_shells()
    if not shells:
        raise FlightrecError("neither bash nor zsh is installed")
    with _throw_away_home() as home:
        _Demo(home, shells).tell()
    print("\nThat was all real, and it is gone again. To have it in your shells: flightrec install")
    return ExitCode.OK


@contextlib.contextmanager
def _throw_away_home() -> Iterator[Path]:
    """Make a home, short enough for a socket below it, and delete it with all that runs in it."""
    home = Path(tempfile.mkdtemp(prefix="flightrec-", dir="/tmp"))  # short
    try:
        yield home
    finally:
        with contextlib.suppress(FlightrecError):
            wait_for_end(request(find_paths(str(home)), "stop", autostart=False)["pid"])
        _delete(home)


def _delete(home: Path) -> None:
    """Delete the home; a daemon that is leaving may still write into it."""
    deadline = time.monotonic() + PATIENCE_S
    while home.exists() and time.monotonic() < deadline:
        shutil.rmtree(home, ignore_errors=True)
        time.sleep(0.05)


class _Demo:
    """The story: what is typed, and what must follow from it."""

    def __init__(self, home: Path, shells: list[str]) -> None:
        self._home = home
        self._paths: Paths = find_paths(str(home))
        self._first, self._second, self._third = shells[0], shells[-1], shells[0]
        self._program, typo, arguments = choose_story()
        self._right = f"{self._program} {arguments}"
        self._wrong = f"{typo} {arguments}"
        self._environment = {
            **{name: os.environ[name] for name in KEPT if name in os.environ},
            "HOME": str(home),
        }
        self._project = home / "project"
        self._memory = self._prepare()

    def _prepare(self) -> Path:
        """Make a project in which Claude Code was used, and start the daemon."""
        self._project.mkdir()
        if self._program == "git":
            self._run("git", "init", "-q")
        slug = claude_slug(os.path.realpath(self._project))
        folder = self._home / ".claude/projects" / slug
        folder.mkdir(parents=True)
        self._run(str(find_command()), "daemon", "start")
        return folder / "memory/MEMORY.md"

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            words,
            cwd=self._project,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            raise FlightrecError(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def tell(self) -> None:
        """Type it all, and show what came of it."""
        print(f"A throw-away home, {self._home}, with a private daemon.")
        self._tell_first()
        self._tell_again("second", self._second, r=1)
        self._tell_again("third", self._third, r=2)
        self._show_rule()

    def _tell_first(self) -> None:
        with self._terminal("first", self._first) as shell:
            self._type(shell, self._wrong)
            self._type(shell, self._right)
            rule = self._wait(self._rule, "a rule")
        _say(f"learned {rule.id}: {self._wrong} failed, {self._right} worked")

    def _tell_again(self, which: str, name: str, *, r: int) -> None:
        with self._terminal(which, name) as shell:
            shown = self._type(shell, self._wrong)
            if f"try: {self._right}" not in shown:
                raise FlightrecError(f"no hint was shown in the {which} terminal")
            if shown.index("try: ") > shown.find("not found", shown.index("try: ")):
                raise FlightrecError(f"the hint came too late in the {which} terminal")
            self._type(shell, self._right)
            rule = self._wait(lambda: self._rule(r=r), f"evidence R = {r}")
        _say(f"{rule.id} is {rule.status.value} with R = {rule.r}")

    def _show_rule(self) -> None:
        rule = self._wait(lambda: self._rule(r=2), "the rule")
        if rule.status is not Status.PROMOTED:
            raise FlightrecError(f"{rule.id} was not promoted: it is {rule.status.value}")
        text = self._wait(lambda: self._memory_text(rule.id), "MEMORY.md")
        for words in (("rules",), ("why", rule.id)):
            _say_title(f"flightrec {' '.join(words)}")
            print(self._run(str(find_command()), *words), end="")
        _say_title(f"~/{self._memory.relative_to(self._home)}")
        print(text, end="")

    @contextlib.contextmanager
    def _terminal(self, which: str, name: str) -> Iterator[TypedShell]:
        _say_title(f"{which} terminal: {name}")
        rc = shell_code(
            find_resource(HELPER_NAME), find_command(), find_resource(f"flightrec.{name}")
        )
        shell = TypedShell(name, rc, self._environment, self._project)
        with contextlib.closing(shell):
            yield shell

    def _type(self, shell: TypedShell, line: str) -> str:
        shown = shell.type(line)
        print(f"{self._project.name} $ {line}")
        print("".join(f"{one_line(text)}\n" for text in shown.splitlines()), end="")
        return shown

    def _rule(self, r: int = 0) -> Rule | None:
        """Return the story's rule once it has so much evidence."""
        with contextlib.closing(Store.open_read_only(self._paths.database)) as store:
            rules = Rulebook(store.connection).rules()
        return next((rule for rule in rules if rule.r >= r), None)

    def _memory_text(self, rule_id: str) -> str | None:
        with contextlib.suppress(FileNotFoundError):
            text = self._memory.read_text("utf-8")
            return text if rule_id in text else None
        return None

    def _wait(self, condition: Callable[[], _T | None], what: str) -> _T:
        deadline = time.monotonic() + PATIENCE_S
        while (found := condition()) is None:
            if time.monotonic() > deadline:
                raise FlightrecError(f"waited {PATIENCE_S:.0f} s in vain for {what}")
            time.sleep(0.05)
        return found


def choose_story() -> tuple[str, str, str]:
    """Return program, typo and arguments. Raises FlightrecError where no typo is one."""
    for program, typo, arguments in STORIES:
        if shutil.which(program) and not shutil.which(typo):
            return program, typo, arguments
    raise FlightrecError("no program is left to mistype: both gti and sl are installed")


def _say(text: str) -> None:
    print(colour(f"  ⇒ {text}", "green"))


def _say_title(text: str) -> None:
    print(colour(f"\n── {text} ".ljust(72, "─"), "bold"))
