"""Secrets that only a program's grammar tells: ``mysql -pX``, ``echo X | sudo -S``.

What is known of programs stands in ``secret_tables``. What holds for any program stands here:
options and variables with a secret's name, ``-u USER -p X``, ``login X``, ``user:X@host``. Lines in
quotes, substitutions and here-documents are read the same way, three levels deep.
"""

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flightrec.command_line import Redirection, SimpleCommand, Word
from flightrec.secret_assignments import NAME_GATES
from flightrec.secret_names import (
    Trust,
    classify_name,
    is_harmless,
    is_path,
    looks_random,
    words,
)
from flightrec.secret_tables import LAUNCHERS, PROGRAMS
from flightrec.secret_text import Finding, cookie_values
from flightrec.shell_words import parse

LINES_MAX = 20
"""Longer texts are scripts or output and are read line by line, most of which hold nothing."""

DEPTH_MAX = 3
"""Lines inside lines that are read."""


def find_in_command(text: str) -> list[Finding]:
    """Return the secrets in a command line that are told by the programs' grammar.

    Any text may be given; what is no command line holds none.
    """
    if text.count("\n") <= LINES_MAX:
        return [*_find(text, 0, len(text), DEPTH_MAX)] if _may_hold(text) else []
    return [
        finding
        for start, end in _blocks(text)
        if _may_hold(text[start:end])
        for finding in _find(text, start, end, DEPTH_MAX)
    ]


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines of a long text, joined where a line goes on or begins a here-document."""
    start = end = wanted = 0
    for line in text.splitlines(keepends=True):
        end += len(line)
        wanted = max(wanted - 1, 40 if "<<" in line else 0)
        if wanted == 0 and not line.endswith("\\\n"):
            yield start, end
            start = end
    if start < end:
        yield start, end


def _find(text: str, start: int, end: int, depth: int) -> Iterator[Finding]:
    line = parse(text[start:end])
    reader = _Reader(text, start)
    for index, segment in enumerate(line.segments):
        piped = index > 0 and line.operators[index - 1].text in {"|", "|&"}
        yield from reader.read(segment)
        yield from reader.read_input(segment, line.segments[index - 1] if piped else None)
        if depth:
            for inside in reader.lines_inside(segment):
                if _may_hold(text[slice(*inside)]):
                    yield from _find(text, *inside, depth - 1)


_TOKENS = re.compile(r"[\w.+-]{2,64}")
_SECRET_OPTION = re.compile(
    r"(?i)(?:\A|\s)[-+/]{1,2}[\w.-]{0,40}?"
    r"(?:pass|pw|psk|pin|puk|secret|token|key|auth|cred|otp|jwt|pat|bearer|cookie|mnemonic|code|login)"
)


def _may_hold(text: str) -> bool:
    """Tell whether a line is worth being taken apart."""
    if (":" in text and "@" in text) or " -p" in text or _SECRET_OPTION.search(text):
        return True
    tokens = _TOKENS.findall(text)
    if not _rows().keys().isdisjoint(tokens):
        return True
    lower = text.lower()
    named = any(gate in lower for gate in NAME_GATES)
    return named and ("=" in text or not _WORTHWHILE.isdisjoint(tokens))


# --- the tables, taken apart -----------------------------------------------------------------


class _Place(NamedTuple):
    """``form`` tells where and how a secret stands, as in the table; ``given`` when it does."""

    form: str
    given: str


class _Row(NamedTuple):
    """A row of ``PROGRAMS``. ``options`` maps an option to the form of its value."""

    subcommand: tuple[str, ...]
    options: dict[str, str]
    places: tuple[_Place, ...]


_FORMS = ".:%,/=>~!_"
_NO_OPTION = re.compile(r"-?[0-9]{1,2}[?:]?\Z|[:@/=]\Z|<:?\Z|--\Z")


@functools.cache
def _rows() -> dict[str, list[_Row]]:
    rows: dict[str, list[_Row]] = {}
    for program in PROGRAMS:
        row = _row(program.subcommand, program.places)
        for name in program.names.split():
            rows.setdefault(name, []).append(row)
    return rows


def _row(subcommand: str, places: str) -> _Row:
    options = {}
    others = []
    for text in places.split():
        form, _, given = text.partition("&")
        if _NO_OPTION.match(form):
            others.append(_Place(form, given))
        elif form[-1] in _FORMS:
            options[form[:-1]] = form[-1]
        else:
            options[form] = ""
    return _Row(tuple(subcommand.split()), options, tuple(others))


@functools.cache
def _launchers() -> frozenset[str]:
    return frozenset(LAUNCHERS.split())


class _Command(NamedTuple):
    """A program of the table with its arguments and all that its rows say."""

    arguments: Sequence[Word]
    options: dict[str, str]
    rows: Sequence[_Row]


def _known_commands(segment: SimpleCommand) -> Iterator[_Command]:
    """Yield the programs of the table in a segment: its own, wrappers, what launchers start."""
    launched = False
    for index, word in enumerate(segment.words):
        if index > segment.wrappers and not launched:
            return
        name = _program_name(word.text)
        launched = launched or name in _launchers()
        if name in _rows():
            arguments = segment.words[index + 1 :]
            if index < segment.wrappers:
                arguments = segment.words[index + 1 : segment.wrappers]
            texts = [argument.text for argument in arguments]
            rows = [row for row in _rows()[name] if _in_order(row.subcommand, texts)]
            if rows:
                yield _Command(arguments, _merged(rows), rows)


def _program_name(text: str) -> str:
    name = text.rsplit("/", 1)[-1]
    return f"{name.removeprefix('impacket-')}.py" if name.startswith("impacket-") else name


def _in_order(wanted: Sequence[str], texts: Sequence[str]) -> bool:
    rest = iter(texts)
    return all(word in rest for word in wanted)


def _merged(rows: Sequence[_Row]) -> dict[str, str]:
    """Return the options of all rows; one that takes a secret beats one that takes none."""
    options: dict[str, str] = {}
    for row in rows:
        for option, form in row.options.items():
            if form not in "!_" or option not in options or not form:
                options[option] = form
    return options


# --- options and plain words -----------------------------------------------------------------


class _Value(NamedTuple):
    """``word.text[begin:]``, given to ``option``; ``form`` as in the table, ``?`` if not there."""

    option: str
    form: str
    word: Word
    begin: int

    @property
    def text(self) -> str:
        """Return what the option is given."""
        return self.word.text[self.begin :]


class _Arguments(NamedTuple):
    """A command's arguments sorted out: what options are given, and the words that are none."""

    values: Sequence[_Value]
    plain: Sequence[Word]


_OPTION = re.compile(r"[-+]{1,2}[A-Za-z][\w.-]{0,80}|/[A-Za-z][\w-]{0,40}(?=:)")
_CLUSTER = re.compile(r"-[A-Za-z]{2,5}\Z")
_LONG_WORD = re.compile(r"-[A-Za-z]{4,}\Z")


def _sort_out(arguments: Sequence[Word], options: dict[str, str], *, stop: bool) -> _Arguments:
    """Sort arguments out; with ``stop`` only those before the first plain word."""
    values: list[_Value] = []
    plain: list[Word] = []
    used = False
    for index, word in enumerate(arguments):
        if used:
            used = False
            continue
        following = arguments[index + 1] if index + 1 < len(arguments) else None
        if word.text not in options and not _OPTION.match(word.text):
            if stop:
                break
            plain.append(word)
        elif (value := _inline(word, options)) is not None:
            values.append(value)
        elif following is not None and (value := _separate(word, following, options)) is not None:
            values.append(value)
            used = value.form != "?" or _is_announced(value)
    return _Arguments(values, plain)


def _inline(word: Word, options: dict[str, str]) -> _Value | None:
    """Return the value inside an option's own word: ``--name=X``, ``-pX``, ``/p:X``."""
    text, short = word.text, word.text[:2]
    head = _OPTION.match(text)
    name = head[0] if head else text
    mark = text[len(name) : len(name) + 1]
    if mark == "=" or (mark == ":" and (name in options or _names_secret(name))):
        return _Value(name, options.get(name, "?"), word, len(name) + 1)
    form = options.get(short, "!") if text not in options and len(text) > 2 else "!"
    if form in {"!", "_"} or (not form and _LONG_WORD.match(text)):
        return None
    return _Value(short, form.strip("."), word, 2)


def _separate(word: Word, following: Word, options: dict[str, str]) -> _Value | None:
    """Return the value that an option finds in the word after it."""
    name = word.text
    if (
        name not in options
        and _CLUSTER.match(name)
        and options.get(f"-{name[-1]}", "!") not in "!_."
    ):
        name = f"-{name[-1]}"
    form = options.get(name, "?")
    if form in {".", "!"} or _OPTION.match(following.text):
        return None
    return _Value(name, form, following, 0)


def _names_secret(name: str) -> bool:
    named = classify_name(name) if len(name) > 2 else None
    return named is not None and named.trust is Trust.SURE


def _is_announced(value: _Value) -> bool:
    """Tell whether an option that no row knows takes a secret by its name."""
    named = classify_name(value.option) if len(value.option) > 2 else None
    if named is None or is_harmless(value.text, named.kind) or is_path(value.text):
        return False
    if named.trust is Trust.SURE or looks_random(value.text):
        return True
    return "pin" in value.option and value.text.isdigit() and len(value.text) >= 4


# --- what a segment tells --------------------------------------------------------------------

_Span = tuple[Word, int, int]
"""A word and the part of its text that is a secret."""


def _secrets(segment: SimpleCommand) -> Iterator[tuple[_Span, str, str]]:
    """Yield the secrets of a segment, their kinds and rules."""
    known = list(_known_commands(segment))
    main = segment.words[segment.wrappers + 1 :]
    if not any(command.arguments == main for command in known):
        known.append(_Command(main, {}, ()))
    silent = {o: form for command in known for o, form in command.options.items() if form == "!"}
    for command in known:
        options = {**silent, **command.options}
        stop = any(place.form == "--" for row in command.rows for place in row.places)
        arguments = _sort_out(command.arguments, options, stop=stop)
        for value in arguments.values:
            yield from _option_secret(value)
        for row in command.rows:
            yield from _placed_secrets(row, command.arguments, arguments.plain)
        if command.arguments == main:
            yield from _generic_secrets(segment, arguments)


def _option_secret(value: _Value) -> Iterator[tuple[_Span, str, str]]:
    word, begin, end = value.word, value.begin, len(value.word.text)
    if value.form == "?":
        if _is_announced(value):
            named = classify_name(value.option)
            yield (word, begin, end), named.kind if named else "secret", "option"
        elif _is_login(value):
            yield from _pair_secret(word, begin, ":")
    elif value.form == "":
        if _is_secret(value.text):
            named = classify_name(value.option)
            yield (word, begin, end), named.kind if named else "password", "program"
    elif value.form == "~":
        for start, stop, kind in cookie_values(word.text, begin, end):
            yield (word, start, stop), kind, "program"
    elif value.form != "_":
        yield from _pair_secret(word, begin, value.form)


def _is_secret(value: str) -> bool:
    return not is_harmless(value, "password") and not is_path(value)


_LOGIN_OPTIONS = frozenset(
    ["--auth", "-auth", "--credentials", "--creds", "--basic-auth", "--login", "--userpass"]
)


def _is_login(value: _Value) -> bool:
    user, _, password = value.text.partition(":")
    drawn = any(map(str.isdigit, password)) and not password.isdigit() and user != password
    return value.option in _LOGIN_OPTIONS and drawn


_SOURCES = frozenset(["file", "env", "fd", "stdin", "prompt", "disabled", "random", "selector"])


def _pair_secret(word: Word, begin: int, mark: str) -> Iterator[tuple[_Span, str, str]]:
    """Yield the second half of ``user:SECRET``, ``pass:SECRET``; all of a lone token."""
    text = word.text[begin:]
    first, found, second = text.partition(":" if mark == ">" else mark)
    if not found:
        if mark not in "/>=" and looks_random(text) and not is_harmless(text, "token"):
            yield (word, begin, len(word.text)), "token", "program"
    elif second and _is_secret(second) and not (mark == ">" and first.lower() in _SOURCES):
        yield (word, begin + len(first) + 1, len(word.text)), "password", "program"


# --- places among the plain words ------------------------------------------------------------


def _placed_secrets(
    row: _Row, arguments: Sequence[Word], plain: Sequence[Word]
) -> Iterator[tuple[_Span, str, str]]:
    words = _after(row.subcommand, plain)
    for place in row.places:
        form = place.form
        if form[0] == "<" or form == "--" or not _is_given(place.given, arguments):
            continue
        if form in ":@/=":
            for word in words:
                yield from _formed_secret(word, form)
        else:
            yield from _counted_secret(words, form)


def _after(subcommand: Sequence[str], plain: Sequence[Word]) -> Sequence[Word]:
    position = 0
    for wanted in subcommand:
        for index in range(position, len(plain)):
            if plain[index].text == wanted:
                position = index + 1
                break
    return plain[position:]


def _is_given(option: str, arguments: Sequence[Word]) -> bool:
    if not option:
        return True
    short = option[1] if len(option) == 2 and option[0] == "-" else ""
    return any(
        word.text == option
        or word.text.startswith(f"{option}=")
        or (short and _CLUSTER.match(word.text) and short in word.text)
        for word in arguments
    )


def _counted_secret(words: Sequence[Word], form: str) -> Iterator[tuple[_Span, str, str]]:
    number = int(form.rstrip("?:"))
    index = number - 1 if number > 0 else len(words) + number
    if not 0 <= index < len(words):
        return
    word = words[index]
    if form.endswith(":"):
        yield from _pair_secret(word, 0, ":")
    elif _is_secret(word.text) and (form[-1] != "?" or looks_random(word.text)):
        yield (word, 0, len(word.text)), "password", "program"


_TARGET = re.compile(r"(?:[\w.-]{1,64}[/\\])?([\w.$-]{1,64}):(.{3,256})@([\w.\[\]:-]{2,128})\Z")
_SLASHED = re.compile(r"[\w\"$#]{1,64}/([^@\s]{1,128})(?:@.{0,200})?\Z")
_NO_USERS = words("""
    acct arn bitbucket bun catalog crate data deno docker file flake git github gitlab gs http https
    image jdbc jsr link mailto nix node npm oci path pkg s3 sha256 sip sips ssh tel type urn
    workspace xmpp
""")
_VERSION = re.compile(r"v?[0-9]{1,4}(?:\.[\w-]{1,12}){0,4}\Z")


def _formed_secret(word: Word, form: str) -> Iterator[tuple[_Span, str, str]]:
    text = word.text
    if form == "@":
        yield from _target_secret(word)
    elif form == "/":
        match = _SLASHED.match(text)
        if match and not is_path(text) and _is_secret(match[1]):
            yield (word, *match.span(1)), "password", "program"
    elif form == "=" or "@" not in text:
        yield from _pair_secret(word, 0, form)


def _target_secret(word: Word) -> Iterator[tuple[_Span, str, str]]:
    """Yield the password of ``user:SECRET@host``, which is no version and no path."""
    match = _TARGET.match(word.text)
    if match is None or match[1].lower() in _NO_USERS or match[3].startswith("sha"):
        return
    secret = match[2]
    if secret.isalpha() or secret.isdigit() or _VERSION.match(secret) or secret.startswith("//"):
        return
    if _is_secret(secret):
        yield (word, *match.span(2)), "password", "target"


# --- rules for any program -------------------------------------------------------------------

_USER_OPTIONS = frozenset(["-u", "-U", "--user", "--username", "--login", "--email"])
_PORT_OR_NAME = re.compile(r"(?:[\d.,:\[\]*-]{1,80}|[A-Za-z_-]{1,80})\Z")
_VERBS = words("""
    activate add-authtoken api-key apikey auth authenticate authtoken login redeem register
    set-token token unlock
""")
_SETTERS = words("""
    --add --global --set -Ux -gx -x add config config:set configure connect create edit env:set
    import modify put set setenv setx update write
""")
_WORTHWHILE = _VERBS | _SETTERS
_SETTING = re.compile(r"[\w./:@-]{2,160}\Z")
_MORE_NAMES = re.compile(r"[,;&?]\s?[\w.-]{1,64}=")
_RUNS_NEXT = re.compile(r"-[a-z]{0,4}c\Z|[^-]")
"""What stands before a line that is run: ``-c``, a host; and not before ``-e "NAME=a b"``."""

_ASSIGNMENT = re.compile(r"(?P<name>[\w.\-\[\]]{2,120})\+?=")


def _generic_secrets(
    segment: SimpleCommand, arguments: _Arguments
) -> Iterator[tuple[_Span, str, str]]:
    for word in segment.assignments:
        yield from _assigned_secret(word)
    runs_text = _program_name(segment.program) in _launchers()
    for previous, word in itertools.pairwise(segment.words):
        if not (runs_text and word.quoted and " " in word.text and _RUNS_NEXT.match(previous.text)):
            yield from _assigned_secret(word)
    for word in arguments.plain:
        yield from _target_secret(word)
    yield from _login_secret(arguments.values)
    yield from _spoken_secrets(segment)


def _assigned_secret(word: Word) -> Iterator[tuple[_Span, str, str]]:
    match = _ASSIGNMENT.match(word.text)
    named = classify_name(match["name"]) if match else None
    if match is None or named is None or named.trust is Trust.QUERY:
        return
    value = word.text[match.end() :]
    if is_harmless(value, named.kind) or _MORE_NAMES.search(value):
        return
    if named.trust is Trust.SURE or looks_random(value):
        yield (word, match.end(), len(word.text)), named.kind, "assignment"


def _login_secret(values: Sequence[_Value]) -> Iterator[tuple[_Span, str, str]]:
    """Yield X of ``-u USER -p X``, where X is no port."""
    if not any(value.option in _USER_OPTIONS for value in values):
        return
    for value in values:
        text = value.text
        if value.option != "-p" or value.form != "?" or _PORT_OR_NAME.match(text):
            continue
        if "/" not in text and _is_secret(text):
            yield (value.word, value.begin, len(value.word.text)), "password", "login"


def _spoken_secrets(segment: SimpleCommand) -> Iterator[tuple[_Span, str, str]]:
    """Yield X of ``tool login X`` and of ``tool set api.password X``."""
    words = segment.words[segment.wrappers :]
    setting = False
    for index, word in enumerate(words[:-1]):
        following = words[index + 1]
        value = following.text
        if index in {1, 2} and word.text in _VERBS and looks_random(value):
            if "." not in value and _is_secret(value):
                yield (following, 0, len(value)), "token", "login"
        elif setting and not _OPTION.match(value):
            kind = _setting_kind(word.text)
            if kind and _is_secret(value) and not is_harmless(value, kind):
                yield (following, 0, len(value)), kind, "setting"
        setting = setting or word.text in _SETTERS


def _setting_kind(name: str) -> str:
    """Return what a word announces as a setting's name, unlike a subcommand such as ``token``."""
    if not _SETTING.match(name):
        return ""
    named = classify_name(name.rsplit("/", 1)[-1])
    if named is None or named.trust is not Trust.SURE:
        return ""
    certain = any(mark in name for mark in "_.:-") or name.lower() in _PLAIN_SETTINGS
    return named.kind if certain else ""


_PLAIN_SETTINGS = frozenset(["password", "requirepass", "psk"])


# --- standard input --------------------------------------------------------------------------

_PRODUCERS = frozenset(["echo", "printf", "print", "yes"])
_STDIN_OPTION = re.compile(
    r"--(?:[a-z-]{0,20}(?:password|passphrase|passwd|pass|token|secret|key|pin)-(?:from-)?stdin"
    r"|stdin-[a-z-]{0,20}(?:password|passphrase|token|secret|pass)|with-token|password-from-stdin)\Z"
)


def _stdin_form(segment: SimpleCommand) -> str:
    """Return ``<`` or ``<:`` where a segment reads secrets from standard input, else nothing."""
    for command in _known_commands(segment):
        for row in command.rows:
            for place in row.places:
                if place.form[0] == "<" and _is_given(place.given, command.arguments):
                    return place.form
    return "<" if any(_STDIN_OPTION.match(word.text) for word in segment.words) else ""


def _produced_words(producer: SimpleCommand) -> Iterator[Word]:
    """Yield the words that a segment prints."""
    if producer.program.rsplit("/", 1)[-1] not in _PRODUCERS:
        return
    words = [word for word in producer.arguments if not re.match(r"-[A-Za-z]{1,4}\Z", word.text)]
    if producer.program == "printf" and len(words) > 1 and "%" in words[0].text:
        del words[0]
    yield from words


# --- from words to the text ------------------------------------------------------------------


class _Reader:
    """Reads segments of a line that begins at ``base`` in ``text``."""

    def __init__(self, text: str, base: int) -> None:
        self._text = text
        self._base = base

    def read(self, segment: SimpleCommand) -> Iterator[Finding]:
        """Yield the secrets in a segment's words."""
        for (word, begin, end), kind, rule in _secrets(segment):
            yield Finding(*self._place(word, begin, end), kind, rule)

    def read_input(
        self, segment: SimpleCommand, producer: SimpleCommand | None
    ) -> Iterator[Finding]:
        """Yield what is fed to a segment that takes secrets from standard input."""
        redirections = [r for r in segment.redirections if r.operator in {"<<<", "<<", "<<-"}]
        if producer is None and not redirections:
            return
        form = _stdin_form(segment)
        if not form:
            return
        here = [r.target for r in redirections if r.operator == "<<<"]
        if producer is not None:
            here += _produced_words(producer)
            redirections += producer.redirections
        for word in here:
            yield from self._fed_word(word, form)
        for redirection in redirections:
            if redirection.body is not None:
                yield from self._fed_body(redirection, form)

    def _fed_word(self, word: Word, form: str) -> Iterator[Finding]:
        begin = word.text.find(":") + 1 if form == "<:" else 0
        if (begin or form == "<") and not is_harmless(word.text[begin:], "password"):
            yield Finding(*self._place(word, begin, len(word.text)), "password", "stdin")

    def _fed_body(self, redirection: Redirection, form: str) -> Iterator[Finding]:
        position = self._base + redirection.body_start
        for line in (redirection.body or "").splitlines(keepends=True):
            value = line.strip()
            begin = value.find(":") + 1 if form == "<:" else 0
            if (begin or form == "<") and not is_harmless(value[begin:], "password"):
                start = position + line.index(value)
                yield Finding(start + begin, start + len(value), "password", "stdin")
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

    def _place(self, word: Word, begin: int, end: int) -> tuple[int, int]:
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


_OPENING = re.compile(r"\$\(|<\(|\$?['\"]|`")
