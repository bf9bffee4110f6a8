"""Which command lines are never offered as a remedy: those that destroy, force or weaken.

A hint is read by somebody in a hurry, and by agents that obey. So such a remedy is recorded and
counted like any other, and never suggested. The tables err on the side of silence.
"""

import enum
import fnmatch
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from flightrec.danger_tables import DANGERS, VARIABLES
from flightrec.shell_words import CommandLine, Redirection, SimpleCommand, parse


class Harm(enum.StrEnum):
    """Why a remedy is not offered."""

    DESTRUCTIVE = "destructive"
    FORCING = "forcing"
    INSECURE = "insecure"


class Danger(NamedTuple):
    """What is wrong with a command line; ``what`` is the program or option that shows it."""

    harm: Harm
    what: str

    @property
    def reason(self) -> str:
        """One line for the person."""
        return f"{self.harm}: {self.what}"


_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "ash", "fish"))
_INTERPRETERS = _SHELLS | frozenset(
    ("python", "python3", "perl", "ruby", "node", "php", "source", ".", "eval")
)
_CARRIERS = _SHELLS | frozenset(
    """
    xargs find fd fdfind parallel watch entr ssh su runuser chroot nsenter unshare script eval
    busybox toybox npx bunx pnpx npm pnpm yarn bun uv uvx poetry pipenv pdm hatch bundle docker
    podman nerdctl docker-compose kubectl oc k nix mise direnv php python python3 rails
    """.split()  # noqa: SIM905 - as a table
)
"""Programs among whose words another command may stand."""

_DOWNLOADERS = frozenset(("curl", "wget", "fetch", "aria2c", "http", "https", "xh"))
_DOWNLOAD_IN_WORDS = re.compile(r"(?:\$\(|<\(|`)\s*(?:sudo\s+)?(?:curl|wget|fetch)\b")
_CODE_THAT_DELETES = re.compile(r"\b(rmtree|unlink|unlinkSync|rmSync|rm_rf|remove)\(|File\.delete")
_FORK_BOMB = re.compile(r":\s*\(\s*\)\s*\{.*:\s*\|\s*:")
_NO_HARM_TO_WRITE = re.compile(
    r"/dev/(null|stdout|stderr|tty|fd/\d+|shm/.*)$|[^/]|/(?!dev/|etc/|boot/|proc/|sys/)"
)
_NESTING_MAX = 3


class _Said(NamedTuple):
    """A command's words behind the program, as conditions ask for them.

    ``names`` are the words and the names of options with a value, ``letters`` the short options.
    """

    words: Sequence[str]
    names: frozenset[str]
    letters: frozenset[str]


_Condition = tuple[str | re.Pattern[str], ...]
"""Parts that must all be met: a word, an option, ``!`` and a word, or a pattern for any word."""


class _Row(NamedTuple):
    """``single`` are conditions of one word each, ``others`` what takes a closer look."""

    harm: Harm
    single: frozenset[str]
    others: tuple[_Condition, ...]


class _Table(NamedTuple):
    """Rows by program, rows of programs with a ``*``, rows for any program."""

    named: dict[str, list[_Row]]
    starred: list[tuple[re.Pattern[str], _Row]]
    general: list[_Row]


def _read_table() -> _Table:
    table = _Table({}, [], [])
    for line in DANGERS.splitlines():
        if not line or line.startswith("#"):
            continue
        head, _, conditions = line.partition(" : ")
        harm, *programs = head.split()
        row = _read_row(Harm(harm), conditions.split(" | ") if conditions else [])
        for program in programs:
            if program == "*":
                table.general.append(row)
            elif "*" in program:
                table.starred.append((re.compile(fnmatch.translate(program)), row))
            else:
                table.named.setdefault(program, []).append(row)
    return table


def _read_row(harm: Harm, conditions: Sequence[str]) -> _Row:
    single = frozenset(c for c in conditions if not set(c) & set(" ~*!") and not _is_short(c))
    others = [c for c in conditions if c not in single]
    return _Row(harm, single, tuple(tuple(map(_read_part, c.split())) for c in others))


def _is_short(option: str) -> bool:
    return len(option) == 2 and option[0] == "-" and option != "--"


def _read_part(part: str) -> str | re.Pattern[str]:
    if part.startswith("~"):
        return re.compile(part[1:])
    return re.compile(f"^(?:{fnmatch.translate(part)})") if "*" in part else part


def _read_variables() -> list[tuple[Harm, re.Pattern[str]]]:
    rows = [line.split(maxsplit=1) for line in VARIABLES.split("\n") if line]
    return [(Harm(harm), re.compile(pattern)) for harm, pattern in rows]


_ROWS = _read_table()
_SAFEGUARDS = _read_variables()


def danger_of(line: CommandLine) -> Danger | None:
    """Return what makes this line unfit to be offered, or None."""
    return _danger_of_line(line, 0)


@lru_cache(maxsize=2048)
def danger_in(text: str) -> Danger | None:
    """Return what makes a command line unfit to be offered, or None."""
    return danger_of(parse(text))


def _danger_of_line(line: CommandLine, depth: int) -> Danger | None:
    if _FORK_BOMB.search(line.text):
        return Danger(Harm.DESTRUCTIVE, "fork bomb")
    for index, segment in enumerate(line.segments):
        found = _danger_of_segment(segment, depth) or _runs_a_download(line, index)
        if found is not None:
            return found
    return None


def _danger_of_segment(segment: SimpleCommand, depth: int) -> Danger | None:
    words = [word.text for word in segment.core]
    return (
        _danger_of_variables(word.text for word in (*segment.assignments, *segment.words))
        or _danger_of_redirections(segment.redirections)
        or (_danger_of_words(words, depth) if words else None)
    )


def _danger_of_variables(words: Iterable[str]) -> Danger | None:
    for word in words:
        for harm, pattern in _SAFEGUARDS if "=" in word else ():
            if pattern.match(word):
                return Danger(harm, word.partition("=")[0])
    return None


def _danger_of_redirections(redirections: Sequence[Redirection]) -> Danger | None:
    for redirection in redirections:
        target = redirection.target.text
        if ">" in redirection.operator and not _NO_HARM_TO_WRITE.match(target):
            return Danger(Harm.DESTRUCTIVE, f"> {target}")
    return None


def _danger_of_words(words: Sequence[str], depth: int) -> Danger | None:
    program = words[0].rpartition("/")[2]
    found = _danger_by_table(program, words, general=True)
    if found is None and any(_DOWNLOAD_IN_WORDS.search(word) for word in words[1:]):
        found = (
            Danger(Harm.INSECURE, "runs what it downloads") if program in _INTERPRETERS else None
        )
    if found is None and (program in _CARRIERS or program in _INTERPRETERS):
        found = _danger_carried(words, depth)
    return found


def _danger_carried(words: Sequence[str], depth: int) -> Danger | None:
    """Look at the commands that stand among another program's words, or quoted in one of them."""
    seen: set[str] = set()
    for index, word in enumerate(words[1:], start=1):
        if _CODE_THAT_DELETES.search(word):
            return Danger(Harm.DESTRUCTIVE, "code that deletes")
        found = None
        if word not in seen:
            found = _danger_by_table(word.rpartition("/")[2], words[index:], general=False)
        if found is None and depth < _NESTING_MAX and (" " in word or ";" in word):
            found = _danger_of_line(parse(word), depth + 1)
        if found is not None:
            return found
        seen.add(word)
    return None


def _danger_by_table(program: str, words: Sequence[str], *, general: bool) -> Danger | None:
    rows = [*_ROWS.named.get(program, ())]
    rows += [row for pattern, row in _ROWS.starred if pattern.match(program)]
    if general and any(word.startswith("-") for word in words):
        rows += _ROWS.general
    said = _said(words)
    for row in rows:
        what = _met_by(row, said)
        if what is not None:
            return Danger(row.harm, f"{program} {what}".strip())
    return None


def _met_by(row: _Row, said: _Said) -> str | None:
    """Return the condition of a row that is met: empty where the program is enough."""
    if not (row.single or row.others):
        return ""
    for name in row.single & said.names:
        return name
    for condition in row.others:
        if all(_is_met(part, said) for part in condition):
            return " ".join(part if isinstance(part, str) else part.pattern for part in condition)
    return None


def _said(words: Sequence[str]) -> _Said:
    behind = words[1:]
    options = [word.partition("=")[0] for word in behind if word.startswith("-")]
    letters = {letter for name in options if name[:2] != "--" for letter in name[1:]}
    return _Said(behind, frozenset((*behind, *options)), frozenset(letters))


def _is_met(part: str | re.Pattern[str], said: _Said) -> bool:
    if isinstance(part, re.Pattern):
        return any(part.search(word) for word in said.words)
    if part[0] == "!":
        return part[1:] not in said.names
    if _is_short(part):
        return part[1] in said.letters
    return part in said.names


def _runs_a_download(line: CommandLine, index: int) -> Danger | None:
    """Notice ``curl … | sh``."""
    if index == 0 or line.operators[index - 1].text not in ("|", "|&"):
        return None
    before = {segment.program.rpartition("/")[2] for segment in line.segments[:index]}
    if before & _DOWNLOADERS and _runs_its_input(line.segments[index]):
        return Danger(Harm.INSECURE, "runs what it downloads")
    return None


def _runs_its_input(segment: SimpleCommand) -> bool:
    words = [word.text for word in segment.arguments]
    return segment.program.rpartition("/")[2] in _INTERPRETERS and all(
        word.startswith("-") and word[1:2] not in ("m", "c", "e", "n", "p") for word in words
    )
