"""Secrets that only a program's grammar tells: ``mysql -pX``, ``echo X | sudo -S``.

What is known of programs stands in ``secret_tables``. What holds for any program stands here:
options and variables with a secret's name, ``-u USER -p X``, ``login X``, ``user:X@host``. Lines in
quotes, substitutions and here-documents are read the same way, three levels deep.
"""

from collections.abc import Iterable, Iterator, Sequence

from flightrec.command_line import CommandLine, Redirection, SimpleCommand, Word
from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_assignments import NAME_GATES
from flightrec.secret_input import HERE, fed_secret, produced_words, stdin_form
from flightrec.secret_options import option_secrets, sort_out
from flightrec.secret_programs import (
    Command,
    Row,
    is_given,
    known_commands,
    telling_programs,
    words_after,
)
from flightrec.secret_text import Finding, find_in_text
from flightrec.secret_usage import SETTERS, VERBS, secrets_of_any_program
from flightrec.secret_values import looks_random
from flightrec.secret_words import (
    Secret,
    Secrets,
    half_secret,
    is_secret,
    judged,
    rest,
    target_secret,
)
from flightrec.shell_words import parse

LINES_MAX = 20
"""Longer texts are scripts or output and are read line by line, most of which hold nothing."""

HEREDOC_LINES_MAX = 40

DEPTH_MAX = 3
"""Lines inside lines that are read."""


def find_in_command(text: str) -> list[Finding]:
    """Return the secrets in a command line that are told by the programs' grammar.

    Any text may be given; what is no command line holds none.
    """
    blocks = [(0, len(text))] if text.count("\n") <= LINES_MAX else _blocks(text)
    return [
        finding
        for start, end in blocks
        if _may_hold(text[start:end])
        for finding in _find(text, start, end, DEPTH_MAX)
    ]


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines of a long text, joined where a line goes on or begins a here-document."""
    start = end = wanted = 0
    for line in text.splitlines(keepends=True):
        end += len(line)
        wanted = max(wanted - 1, HEREDOC_LINES_MAX if "<<" in line else 0)
        if wanted == 0 and not line.endswith("\\\n"):
            yield start, end
            start = end
    if start < end:
        yield start, end


def _find(text: str, start: int, end: int, depth: int) -> Iterator[Finding]:
    line = parse(text[start:end])
    reader = _Reader(text, start)
    for index, segment in enumerate(line.segments):
        yield from reader.read(segment)
        yield from reader.read_input(segment, _producers(line, index))
        if depth:
            for inside in reader.lines_inside(segment):
                if _may_hold(text[slice(*inside)]):
                    yield from _find(text, *inside, depth - 1)


def _producers(line: CommandLine, index: int) -> Sequence[SimpleCommand]:
    """Return the segments whose output a segment reads: one, or those of a ``( )`` before it."""
    if index == 0 or line.operators[index - 1].text not in {"|", "|&"}:
        return ()
    first, depth = index - 1, line.segments[index].depth
    while first > 0 and line.segments[first - 1].depth > depth < line.segments[first].depth:
        first -= 1
    return line.segments[first:index]


# --- is there anything to look for? ----------------------------------------------------------

_TOKENS = lazy_pattern(r"[\w.+-]{2,64}")
_SECRET_OPTION = lazy_pattern(
    r"(?i)(?:\A|[\s\"'(`])[-+/]{1,2}[\w.-]{0,40}?"
    r"(?:pass|pw|psk|pin|puk|secret|token|key|auth|cred|otp|jwt|pat|bearer|cookie|mnemonic"
    r"|code|login|user)"
    r"|-(?:token|secret|key|value)\s|(?:set|change|reset|update|user)[-_:](?:[a-z]{1,20}[-_:])?pass"
)
_SHORT_OPTION = lazy_pattern(
    r"[\s\"'(`]-[pPkKW][ \t]{0,4}[\"']?(?=[^\s/]{0,80}[0-9])(?=[^\s/]{0,80}[A-Za-z])"
    r"|\s-[uUa]\s?[\w.@-]{1,64}:"
)


def _may_hold(text: str) -> bool:
    """Tell whether a line is worth being taken apart."""
    if (":" in text and "@" in text) or _SECRET_OPTION.search(text) or _SHORT_OPTION.search(text):
        return True
    tokens = set(_TOKENS.findall(text))
    if not VERBS.isdisjoint(tokens) or any(
        wanted <= tokens
        for name in telling_programs().keys() & tokens
        for wanted in telling_programs()[name]
    ):
        return True
    if "=" not in text and "<<<" not in text and SETTERS.isdisjoint(tokens):
        return False
    lower = text.lower()
    return any(gate in lower for gate in NAME_GATES)


# --- what a segment tells --------------------------------------------------------------------


def _secrets(segment: SimpleCommand) -> Secrets:
    known = list(known_commands(segment))
    # a quoted word may hold no command but options for one: --sshargs "-pw X"
    main = segment.words[segment.wrappers + (not segment.program.startswith("-")) :]
    if not any(command.arguments == main for command in known):
        known.append(Command(main, {}, ()))
    silent = {o: form for command in known for o, form in command.options.items() if form == "!"}
    for command in known:
        stop = any(place.form == "--" for row in command.rows for place in row.places)
        arguments = sort_out(command.arguments, {**silent, **command.options}, stop=stop)
        for value in arguments.values:
            yield from option_secrets(value)
        for row in command.rows:
            yield from _placed_secrets(row, command.arguments, arguments.plain)
        if command.arguments == main:
            yield from secrets_of_any_program(segment, arguments)


# --- places among the plain words ------------------------------------------------------------


def _placed_secrets(row: Row, arguments: Sequence[Word], plain: Sequence[Word]) -> Secrets:
    behind = words_after(row.subcommand, plain)
    for form, given in row.places:
        if form[0] == "<" or form == "--" or not is_given(given, arguments):
            continue
        if form in {":", "@", "/", "="}:
            for word in behind:
                yield from _formed_secret(word, form)
        else:
            yield from _counted_secret(behind, form)


def _counted_secret(plain: Sequence[Word], form: str) -> Secrets:
    number = int(form.rstrip("?:"))
    index = number - 1 if number > 0 else len(plain) + number
    if not 0 <= index < len(plain):
        return
    word = plain[index]
    if form.endswith(":"):
        yield from half_secret(word, 0, ":")
    elif "://" not in word.text and (form[-1] != "?" or looks_random(word.text)):
        yield from _whole_secret(word)


def _whole_secret(word: Word) -> Secrets:
    if is_secret(judged(word, 0)):
        yield rest(word, 0, "pass", "program")


_SLASHED = lazy_pattern(r"[\w\"$#]{1,64}/([^@\s/]{1,128})(?:@.{0,200})?\Z")
_ENDING = lazy_pattern(r"\.\w{2,4}\Z")


def _formed_secret(word: Word, form: str) -> Secrets:
    if form == "@":
        yield from target_secret(word)
    elif form == "/":
        match = _SLASHED.match(word.text)
        if match and is_secret(match[1]) and not _ENDING.search(match[1]):
            yield Secret(word, *match.span(1), "pass", "program")
    elif form == "=" or "@" not in word.text:
        yield from half_secret(word, 0, form)


# --- from words to the text ------------------------------------------------------------------

_OPENING = lazy_pattern(r"\$\(|<\(|\$?['\"]|`")


class _Reader:
    """Reads segments of a line that begins at ``base`` in ``text``."""

    def __init__(self, text: str, base: int) -> None:
        self._text = text
        self._base = base

    def read(self, segment: SimpleCommand) -> Iterator[Finding]:
        """Yield the secrets in a segment's words."""
        for word, begin, end, kind, rule in _secrets(segment):
            yield Finding(*self._span(word, begin, end), kind, rule)
        for word in segment.words:
            if word.quoted and " " in word.text and self._is_pieced(word):
                for begin, end, kind, rule in find_in_text(word.text):
                    yield Finding(*self._span(word, begin, end), kind, rule)

    def _is_pieced(self, word: Word) -> bool:
        """Tell whether a word's text stands nowhere in one piece, as that of ``'a'"b"``."""
        return self._text.find(word.text, self._base + word.start, self._base + word.end) < 0

    def read_input(
        self, segment: SimpleCommand, producers: Sequence[SimpleCommand]
    ) -> Iterator[Finding]:
        """Yield what is fed to a segment that takes secrets from standard input."""
        redirections = [r for r in segment.redirections if r.operator in HERE]
        form = stdin_form(segment) if producers or redirections else ""
        if not form:
            return
        fed = [r.target for r in redirections if r.operator == "<<<"]
        for producer in producers:
            fed += produced_words(producer)
            redirections += producer.redirections
        yield from self._fed_words(fed, form)
        for redirection in redirections:
            if redirection.body is not None:
                yield from self._fed_body(redirection, form)
            elif redirection.target.text.startswith("<("):
                start = self._base + redirection.target.start + 2
                inner = _Reader(self._text, start)
                line = parse(self._text[start : self._base + redirection.target.end - 1])
                for producer in line.segments:
                    yield from inner._fed_words(produced_words(producer), form)

    def _fed_words(self, fed: Iterable[Word], form: str) -> Iterator[Finding]:
        for word in fed:
            begin = fed_secret(word, form)
            if begin is not None:
                yield Finding(*self._span(word, begin, len(word.text)), "pass", "stdin")

    def _fed_body(self, redirection: Redirection, form: str) -> Iterator[Finding]:
        position = self._base + redirection.body_start
        for line in (redirection.body or "").splitlines(keepends=True):
            value = line.strip()
            start = position + line.index(value)
            word = Word(value, start, start + len(value), redirection.target.quoted, quoted=False)
            begin = fed_secret(word, form)
            if begin is not None:
                yield Finding(start + begin, word.end, "pass", "stdin")
            position += len(line)

    def lines_inside(self, segment: SimpleCommand) -> Iterator[tuple[int, int]]:
        """Yield the spans of what may be lines of their own: quotes, ``$( )``, here-documents."""
        targets = [redirection.target for redirection in segment.redirections]
        for word in (*segment.assignments, *segment.words, *targets):
            if (word.quoted or not word.literal) and any(blank in word.text for blank in " \n\t"):
                start, end = self._base + word.start, self._base + word.end
                opening = _OPENING.search(self._text, start, end)
                if opening:
                    yield opening.end(), end - (self._text[end - 1] in ")'\"`")
        for redirection in segment.redirections:
            if redirection.body:
                yield self._base + redirection.body_start, self._base + redirection.body_end

    def _span(self, word: Word, begin: int, end: int) -> tuple[int, int]:
        """Return where ``word.text[begin:end]`` stands in the text; the whole word if unclear."""
        start, stop = self._base + word.start, self._base + word.end
        if not word.quoted:
            return start + begin, start + end
        raw = self._text[start:stop]
        offset = raw.find(word.text)
        if offset >= 0:
            return start + offset + begin, start + offset + end
        offset = raw.rfind(word.text[begin:end], begin)
        if offset >= 0:
            return start + offset, start + offset + end - begin
        kept = begin if raw.startswith(word.text[:begin]) else 0
        return start + kept, stop
