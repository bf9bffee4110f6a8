"""What may reach a person's terminal: text without control codes, and no dangerous advice.

A hint is read by somebody in a hurry, and by agents that obey. So a remedy that destroys, forces or
weakens security is recorded and counted like any other, and never offered. The table errs on the
side of silence.
"""

import enum
import fnmatch
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from flightrec.dangers import DANGERS, VARIABLES
from flightrec.redact import PLACEHOLDER
from flightrec.shell_words import CommandLine, Redirection, SimpleCommand, parse

NEWLINE_MARK = "⏎"

_PLAIN = re.compile(r"[ -~]*")
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Unicode categories of what moves the cursor, turns text around or is not visible."""


def make_harmless(text: str) -> str:
    """Return text of which a terminal only prints every character: no control code survives.

    Newlines become a mark, tabs and other blanks a space, everything else that is not visible is
    spelled out. Doing it twice changes nothing.
    """
    return text if _PLAIN.fullmatch(text) else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character == "\n":
        return NEWLINE_MARK
    if character == "\t" or unicodedata.category(character) == "Zs":
        return " "
    if unicodedata.category(character) not in _UNSEEN:
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # a byte that is no UTF-8
    return f"\\x{code:02x}" if code < 0x100 else f"<U+{code:04X}>"


def is_harmless(text: str) -> bool:
    """Whether a terminal prints this text as it stands."""
    return make_harmless(text) == text


def columns(text: str) -> int:
    """Return how many columns of a terminal the text takes at most."""
    return sum(2 if unicodedata.east_asian_width(c) in "WFA" else 1 for c in text)


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


class _Row(NamedTuple):
    harm: Harm
    conditions: tuple[tuple[str, ...], ...]


class _Table(NamedTuple):
    """Rows by program, rows of programs with a ``*``, rows for any program."""

    named: dict[str, list[_Row]]
    starred: list[tuple[str, _Row]]
    general: list[_Row]


def _read_table() -> _Table:
    table = _Table({}, [], [])
    for line in DANGERS.splitlines():
        if not line or line.startswith("#"):
            continue
        head, _, conditions = line.partition(" : ")
        harm, *programs = head.split()
        row = _Row(Harm(harm), tuple(tuple(c.split()) for c in _alternatives(conditions)))
        for program in programs:
            if program == "*":
                table.general.append(row)
            elif "*" in program:
                table.starred.append((program, row))
            else:
                table.named.setdefault(program, []).append(row)
    return table


def _alternatives(conditions: str) -> list[str]:
    return conditions.split(" | ") if conditions else []


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
    for index, word in enumerate(words[1:], start=1):
        if _CODE_THAT_DELETES.search(word):
            return Danger(Harm.DESTRUCTIVE, "code that deletes")
        found = _danger_by_table(word.rpartition("/")[2], words[index:], general=False)
        if found is None and depth < _NESTING_MAX and (" " in word or ";" in word):
            found = _danger_of_line(parse(word), depth + 1)
        if found is not None:
            return found
    return None


def _danger_by_table(program: str, words: Sequence[str], *, general: bool) -> Danger | None:
    rows = [*_ROWS.named.get(program, ())]
    rows += [row for pattern, row in _ROWS.starred if fnmatch.fnmatchcase(program, pattern)]
    if general:
        rows += _ROWS.general
    for row in rows:
        if not row.conditions:
            return Danger(row.harm, program)
        for condition in row.conditions:
            if all(_holds(part, words) for part in condition):
                return Danger(row.harm, f"{program} {' '.join(condition)}")
    return None


def _holds(part: str, words: Sequence[str]) -> bool:
    """Whether one word of a condition is met by the words behind the program."""
    if part.startswith("!"):
        return not _holds(part[1:], words)
    return any(_is_met(part, word) for word in words[1:])


def _is_met(part: str, word: str) -> bool:
    if part.startswith("~"):
        return _compiled(part[1:]).search(word) is not None
    if "*" in part:
        return fnmatch.fnmatchcase(word, part)
    if len(part) == 2 and part[0] == "-" and part[1] != "-":
        return word[:1] == "-" and word[:2] != "--" and part[1] in word[1:].partition("=")[0]
    return word == part or (part[0] == "-" and word.startswith(part + "="))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


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


def why_held_back(commands: Iterable[str], words: Iterable[str]) -> str:
    """Return why a rule is never offered whose remedy runs these commands; empty where it may be.

    ``words`` are those of its trigger: they are shown to nobody who does not type them.
    """
    commands = tuple(commands)
    for text in (*commands, *words):
        if PLACEHOLDER.search(text):
            return "it holds a secret"
        if not is_harmless(text):
            return "it holds characters that a terminal does not print"
    dangers = (danger_in(command) for command in commands)
    return next((danger.reason for danger in dangers if danger is not None), "")
