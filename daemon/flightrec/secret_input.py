"""Secrets that a program is fed: ``echo X | sudo -S``, ``chpasswd <<< bob:X``."""

from collections.abc import Iterator, Sequence

from flightrec.command_line import SimpleCommand, Word
from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_names import words
from flightrec.secret_programs import is_given, known_commands, program_name
from flightrec.secret_values import is_harmless
from flightrec.secret_words import judged, names_secret

HERE = frozenset(["<<<", "<<", "<<-", "<"])
_PRODUCERS = frozenset(["echo", "printf", "print", "yes"])
_SWITCHES = lazy_pattern(r"-[A-Za-z]{1,4}\Z")
_STDIN_OPTION = lazy_pattern(
    r"--(?:[a-z-]{0,20}(?:password|passphrase|passwd|pass|token|secret|key|pin)-(?:from-)?stdin"
    r"|stdin-[a-z-]{0,20}(?:password|passphrase|token|secret|pass)|with-token|password-from-stdin)\Z"
)


def stdin_form(segment: SimpleCommand) -> str:
    """Return ``<`` or ``<:`` where a segment reads secrets from standard input, else nothing."""
    named = any(
        _VARIABLE.match(word.text) and names_secret(word.text) for word in segment.arguments
    )
    if named and (segment.program == "read" or _sets_variables(segment.words)):
        return "<"
    for command in known_commands(segment):
        for form, given in (place for row in command.rows for place in row.places):
            if form[0] == "<" and is_given(given, command.arguments):
                return form
    return "<" if any(_STDIN_OPTION.match(word.text) for word in segment.words) else ""


_VARIABLE = lazy_pattern(r"[A-Za-z][A-Za-z0-9_]{2,80}\Z")
_SETS_VARIABLES = words("add create env env:set put secret secret:create secrets set variable")


def _sets_variables(spoken: Sequence[Word]) -> bool:
    """Tell whether a tool is told to keep a secret under a variable's name."""
    return len({word.text for word in spoken} & _SETS_VARIABLES) > 1


def produced_words(producer: SimpleCommand) -> Iterator[Word]:
    """Yield the words that a segment prints."""
    program = program_name(producer.program)
    if program not in _PRODUCERS:
        return
    printed = [word for word in producer.arguments if not _SWITCHES.match(word.text)]
    if program == "printf" and len(printed) > 1 and "%" in printed[0].text:
        del printed[0]
    yield from printed


def fed_secret(line: Word, form: str) -> int | None:
    """Return where the secret begins in a line of standard input."""
    begin = line.text.find(":") + 1 if form == "<:" else 0
    secret = (begin or form == "<") and not is_harmless(judged(line, begin), "pass")
    return begin if secret else None
