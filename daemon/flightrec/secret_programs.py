"""The table of programs, taken apart: which rows hold for a command and where its secrets stand."""

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flightrec.command_line import SimpleCommand, Word
from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_tables import LAUNCHERS, PROGRAMS

SILENT = frozenset(["!", "_"])
"""Forms of options that tell no secret."""

OPTION = lazy_pattern(
    r"-{1,2}\w[\w.-]{0,80}|\+{1,2}[a-z][a-z_-]{0,40}(?=[=:]|\Z)|/[A-Za-z][\w-]{0,40}(?=[=:])"
)
"""The name of an option, also where ``=`` or a value follows."""

CLUSTER = lazy_pattern(r"-[A-Za-z]{2,5}\Z")
"""Perhaps several short options in one word: ``-sSu``."""


class Place(NamedTuple):
    """A place that is no option's value: ``form`` as in the table; only where ``given`` is."""

    form: str
    given: str


class Row(NamedTuple):
    """A row of the table. ``options`` maps an option to the form of its value."""

    subcommand: tuple[str, ...]
    options: dict[str, str]
    places: tuple[Place, ...]


class Command(NamedTuple):
    """A command of which the table knows ``rows``; ``options`` are those of all rows."""

    arguments: Sequence[Word]
    options: dict[str, str]
    rows: Sequence[Row]


_FORMS = frozenset(".:%,/=>~!_")
_NO_OPTION = lazy_pattern(r"-?[0-9]{1,2}[?:]?\Z|[:@/=]\Z|<:?\Z|--\Z")


@functools.cache
def known_programs() -> dict[str, list[Row]]:
    """Return the rows of each program."""
    rows: dict[str, list[Row]] = {}
    for program in PROGRAMS:
        row = _row(program.subcommand, program.places)
        for name in program.names.split():
            rows.setdefault(name, []).append(row)
    return rows


def _row(subcommand: str, places: str) -> Row:
    options = {}
    others = []
    for text in places.split():
        form, _, given = text.partition("&")
        if _NO_OPTION.match(form):
            others.append(Place(form, given))
        elif form[-1] in _FORMS:
            options[form[:-1]] = form[-1]
        else:
            options[form] = ""
    return Row(tuple(subcommand.split()), options, tuple(others))


@functools.cache
def telling_programs() -> dict[str, list[frozenset[str]]]:
    """Return for each program the subcommands with which it may be given a secret."""
    return {
        name: [frozenset(row.subcommand) for row in rows if _tells(row)]
        for name, rows in known_programs().items()
    }


def _tells(row: Row) -> bool:
    return bool(row.places) or not SILENT.issuperset(row.options.values())


_TRACES = frozenset(["+", "++", "+++", "$", "%", ">>>"])
"""What a shell prints before a command: a prompt, the trace of ``set -x``."""


@functools.cache
def _launchers() -> frozenset[str]:
    return frozenset([*LAUNCHERS.split(), *_TRACES])


def is_launcher(text: str) -> bool:
    """Tell whether the command of another program may stand among this one's arguments."""
    return program_name(text) in _launchers()


def program_name(text: str) -> str:
    """Return the name under which the table knows a program."""
    name = text.rsplit("/", 1)[-1]
    return f"{name.removeprefix('impacket-')}.py" if name.startswith("impacket-") else name


def known_commands(segment: SimpleCommand) -> Iterator[Command]:
    """Yield what the table knows of a segment: the program, its wrappers, what launchers start."""
    table, launchers = known_programs(), _launchers()
    launched = False
    for index, word in enumerate(segment.words):
        if index > segment.wrappers and not launched:
            return
        name = program_name(word.text)
        launched = launched or name in launchers
        if name in table:
            end = segment.wrappers if index < segment.wrappers else len(segment.words)
            arguments = segment.words[index + 1 : end]
            texts = [argument.text for argument in arguments]
            rows = [row for row in table[name] if _in_order(row.subcommand, texts)]
            if rows:
                yield Command(arguments, _all_options(rows), rows)


def _in_order(wanted: Sequence[str], texts: Sequence[str]) -> bool:
    rest = iter(texts)
    return all(word in rest for word in wanted)


def _all_options(rows: Sequence[Row]) -> dict[str, str]:
    """Return the options of all rows; one that takes a secret beats one that takes none."""
    if len(rows) == 1:
        return rows[0].options
    options: dict[str, str] = {}
    for row in rows:
        for option, form in row.options.items():
            if form not in SILENT or option not in options:
                options[option] = form
    return options


def is_given(option: str, arguments: Sequence[Word]) -> bool:
    """Tell whether an option stands among the arguments; always where ``option`` is empty."""
    if not option:
        return True
    letter = option[1] if len(option) == 2 and option[0] == "-" else ""
    return any(
        word.text == option
        or word.text.startswith(f"{option}=")
        or (letter and letter in word.text and CLUSTER.match(word.text))
        for word in arguments
    )


def words_after(subcommand: Sequence[str], plain: Sequence[Word]) -> Sequence[Word]:
    """Return the plain words behind those of the subcommand."""
    position = 0
    for wanted in subcommand:
        found = (i for i in range(position, len(plain)) if plain[i].text == wanted)
        position = next(found, position - 1) + 1
    return plain[position:]
