"""Which command lines are never offered as a remedy: those that destroy, force or weaken.

A hint is read by somebody in a hurry, and by agents that obey. So such a remedy is recorded and
counted like any other, and never suggested. The tables err on the side of silence.
"""

import enum
import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
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

_TAKES_CODE = _SHELLS | frozenset(("ssh", "su", "watch", "eval", "parallel", "script", "entr"))
"""Programs that have a shell read one of their words."""

_DOWNLOADERS = frozenset(("curl", "wget", "fetch", "aria2c", "http", "https", "xh"))
_DOWNLOAD_IN_WORDS = re.compile(r"(?:\$\(|<\(|`)\s*(?:sudo\s+)?(?:curl|wget|fetch)\b")
_CODE_LIKE = re.compile(r"[\s;|&]")
_CODE_THAT_DELETES = re.compile(r"\b(rmtree|unlink|unlinkSync|rmSync|rm_rf|remove)\(|File\.delete")
_FORK_BOMB = re.compile(r":\s*\(\s*\)\s*\{.*:\s*\|\s*:")
_NO_HARM_TO_WRITE = re.compile(
    r"/dev/(null|stdout|stderr|tty|fd/\d+|shm/.*)$|[^/]|/(?!dev/|etc/|boot/|proc/|sys/)"
)
_RUNS_DOWNLOAD = "runs what it downloads"
_PIPES = frozenset(("|", "|&"))
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


class _Rules:
    """What is dangerous about one program, by a word or letter that must be there.

    ``whole`` is the harm of the program itself; ``others`` are conditions without such a word.
    """

    def __init__(self) -> None:
        self.whole: Harm | None = None
        self.by_name: dict[str, list[tuple[_Condition, Harm]]] = {}
        self.by_letter: dict[str, list[tuple[_Condition, Harm]]] = {}
        self.others: list[tuple[_Condition, Harm]] = []

    def add(self, harm: Harm, conditions: Sequence[str]) -> None:
        """Take in a row of the table."""
        if not conditions:
            self.whole = harm
        for text in conditions:
            condition = tuple(map(_read_part, text.split()))
            self._list_for(condition).append((condition, harm))

    def _list_for(self, condition: _Condition) -> list[tuple[_Condition, Harm]]:
        words = [part for part in condition if isinstance(part, str) and part[0] != "!"]
        names = [word for word in words if not _is_short(word)]
        if names:
            return self.by_name.setdefault(names[0], [])
        return self.by_letter.setdefault(words[0][1], []) if words else self.others

    def may_hold(self, said: _Said) -> Iterator[tuple[_Condition, Harm]]:
        """Yield the conditions that these words may meet."""
        for name in self.by_name.keys() & said.names:
            yield from self.by_name[name]
        for letter in self.by_letter.keys() & said.letters:
            yield from self.by_letter[letter]
        yield from self.others


class _Table(NamedTuple):
    """Rules by program, those of programs with a ``*``, those for any program."""

    named: dict[str, _Rules]
    starred: list[tuple[re.Pattern[str], _Rules]]
    general: _Rules


def _read_table() -> _Table:
    table = _Table({}, [], _Rules())
    for line in DANGERS.splitlines():
        if not line or line.startswith("#"):
            continue
        head, _, conditions = line.partition(" : ")
        harm, *programs = head.split()
        for program in programs:
            rules = _rules_for(table, program)
            rules.add(Harm(harm), conditions.split(" | ") if conditions else [])
    return table


def _rules_for(table: _Table, program: str) -> _Rules:
    if program == "*":
        return table.general
    if "*" in program:
        rules = _Rules()
        table.starred.append((re.compile(fnmatch.translate(program)), rules))
        return rules
    return table.named.setdefault(program, _Rules())


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
    downloads = False
    joins = ["", *(operator.text for operator in line.operators)]
    for segment, join in zip(line.segments, joins, strict=False):
        downloads = downloads and join in _PIPES
        if downloads and _runs_its_input(segment):
            return Danger(Harm.INSECURE, _RUNS_DOWNLOAD)
        found = _danger_of_segment(segment, depth)
        if found is not None:
            return found
        downloads = downloads or segment.program.rpartition("/")[2] in _DOWNLOADERS
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
        found = Danger(Harm.INSECURE, _RUNS_DOWNLOAD) if program in _INTERPRETERS else None
    if found is None and (program in _CARRIERS or program in _INTERPRETERS):
        found = _danger_carried(words, depth)
    return found


def _danger_carried(words: Sequence[str], depth: int) -> Danger | None:
    """Look at the commands that stand among another program's words, or quoted in one of them."""
    seen: set[str] = set()
    takes_code = words[0].rpartition("/")[2] in _TAKES_CODE
    for index, word in enumerate(words[1:], start=1):
        if _CODE_THAT_DELETES.search(word):
            return Danger(Harm.DESTRUCTIVE, "code that deletes")
        found = None
        if word not in seen:
            found = _danger_by_table(word.rpartition("/")[2], words[index:], general=False)
        if found is None and takes_code and depth < _NESTING_MAX and _CODE_LIKE.search(word):
            found = _danger_of_line(parse(word), depth + 1)
        if found is not None:
            return found
        seen.add(word)
        takes_code = takes_code or word.rpartition("/")[2] in _TAKES_CODE
    return None


def _danger_by_table(program: str, words: Sequence[str], *, general: bool) -> Danger | None:
    known = [_ROWS.named[program]] if program in _ROWS.named else []
    known += [rules for pattern, rules in _ROWS.starred if pattern.match(program)]
    if general and any(word.startswith("-") for word in words):
        known.append(_ROWS.general)
    if not known:
        return None
    said = _said(words)
    for rules in known:
        if rules.whole is not None:
            return Danger(rules.whole, program)
        for condition, harm in rules.may_hold(said):
            if all(_is_met(part, said) for part in condition):
                return Danger(harm, f"{program} {_spell(condition)}")
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


def _spell(condition: _Condition) -> str:
    return " ".join(part if isinstance(part, str) else part.pattern for part in condition)


def _runs_its_input(segment: SimpleCommand) -> bool:
    words = [word.text for word in segment.arguments]
    return segment.program.rpartition("/")[2] in _INTERPRETERS and all(
        word.startswith("-") and word[1:2] not in ("m", "c", "e", "n", "p") for word in words
    )
