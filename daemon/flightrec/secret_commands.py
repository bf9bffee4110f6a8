"""Secrets that only a program's grammar tells: ``mysql -pX``, ``echo X | sudo -S``.

What is known of programs stands in ``secret_tables``. What holds for any program stands here:
options and variables with a secret's name, ``-u USER -p X``, ``login X``, ``user:X@host``. Lines in
quotes, substitutions and here-documents are read the same way, three levels deep.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from flightrec.command_line import CommandLine, Redirection, SimpleCommand, Word
from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_assignments import NAME_GATES
from flightrec.secret_names import (
    MARK,
    Trust,
    classify_name,
    is_code,
    is_harmless,
    is_path,
    is_variable,
    login_offset,
    looks_random,
    words,
)
from flightrec.secret_programs import (
    CLUSTER,
    OPTION,
    SILENT,
    Command,
    Row,
    is_given,
    is_launcher,
    known_commands,
    known_programs,
    program_name,
    words_after,
)
from flightrec.secret_text import Finding, cookie_values, find_in_text
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
    r"|-(?:token|secret|key)\s|(?:set|change|reset|update|user)[-_:](?:[a-z]{1,20}[-_:])?pass"
)
_SHORT_OPTION = lazy_pattern(r"\s-[pPkKW]|\s-[uUa]\s?[\w.@-]{1,64}:")
_VERBS = words("""
    activate add-authtoken api-key apikey auth authenticate authorize authorize-account authtoken
    login redeem register set-token token unlock
""")
_SETTERS = words("""
    --add --global --set -Ux -gx -x /set ARG ENV add config config:set configure connect create
    edit env:set import modify put set setenv setx update write
""")


def _may_hold(text: str) -> bool:
    """Tell whether a line is worth being taken apart."""
    if (":" in text and "@" in text) or _SECRET_OPTION.search(text) or _SHORT_OPTION.search(text):
        return True
    tokens = _TOKENS.findall(text)
    if not known_programs().keys().isdisjoint(tokens) or not _VERBS.isdisjoint(tokens):
        return True
    if "=" not in text and "<<<" not in text and _SETTERS.isdisjoint(tokens):
        return False
    lower = text.lower()
    return any(gate in lower for gate in NAME_GATES)


# --- options and plain words -----------------------------------------------------------------


class _Value(NamedTuple):
    """``word.text[begin:]``, given to ``option``; ``form`` as in the table, ``?`` if not there."""

    option: str
    form: str
    word: Word
    begin: int

    @property
    def text(self) -> str:
        """Return what the option is given, as it is to be judged."""
        return _judged(self.word, self.begin)


def _judged(word: Word, begin: int) -> str:
    """Return the rest of a word; without a dollar that is written as one and names no variable."""
    text = word.text[begin:]
    return text[1:] if word.literal and text[:1] == "$" and not is_variable(text) else text


class _Arguments(NamedTuple):
    """A command's arguments sorted out: what options are given, and the words that are none."""

    values: Sequence[_Value]
    plain: Sequence[Word]


WORD_CLUSTER_MAX = 4
"""``-erP`` may be three options, ``-host`` rather is one."""

_LONG_WORD = lazy_pattern(r"-[A-Za-z]{4,}\Z")


def _sort_out(arguments: Sequence[Word], options: dict[str, str], *, stop: bool) -> _Arguments:
    """Sort arguments out; with ``stop`` only those before the first plain word."""
    values: list[_Value] = []
    plain: list[Word] = []
    used = False
    for word, following in itertools.zip_longest(arguments, arguments[1:]):
        if used:
            used = False
        elif not _is_option(word.text, options):
            if stop:
                break
            plain.append(word)
        elif (value := _inside(word, options)) is not None:
            values.append(value)
        elif following is not None and (value := _behind(word, following, options)) is not None:
            values.append(value)
            used = value.form != "?" or _is_announced(value) or _was_announced(value)
    return _Arguments(values, plain)


def _is_option(text: str, options: dict[str, str]) -> bool:
    return OPTION.match(text) is not None or text in options or text.partition("=")[0] in options


def _inside(word: Word, options: dict[str, str]) -> _Value | None:
    """Return the value in an option's own word: ``--name=X``, ``-pX``, ``/p:X``."""
    text = word.text
    head = OPTION.match(text)
    name = head[0] if head else text.partition("=")[0]
    mark = text[len(name) : len(name) + 1]
    if mark == "=" and (name in options or name[1:2] == "-"):
        return _Value(name, options.get(name, "?"), word, len(name) + 1)
    if text in options:
        return None
    glued = next((o for o, form in options.items() if form == "." and text.startswith(o)), text[:2])
    form = options.get(glued, "!") if len(text) > len(glued) else "!"
    if form not in SILENT and (form or not _LONG_WORD.match(text)):
        return _Value(glued, form.strip("."), word, len(glued))
    if mark == "=" or (mark == ":" and (name in options or _names_secret(name))):
        return _Value(name, options.get(name, "?"), word, len(name) + 1)
    return None


def _behind(word: Word, following: Word, options: dict[str, str]) -> _Value | None:
    """Return the value that an option finds in the word after it."""
    name = word.text
    if name not in options and CLUSTER.match(name):
        last = f"-{name[-1]}"
        form = options.get(last, "!")
        if form not in {"!", "_", "."} and (form or len(name) <= WORD_CLUSTER_MAX):
            name = last
    form = options.get(name, "?")
    if form in {".", "!"} or OPTION.match(following.text) or (form == "?" and MARK in name):
        return None
    return _Value(name, form, following, 0)


def _names_secret(name: str) -> bool:
    named = classify_name(name) if len(name) > 2 else None
    return named is not None and named.trust is Trust.SURE


_CODE_OPTION = lazy_pattern(r"(?:pin|puk|otp|mfa|2fa)(?:[-_]?code)?\Z")
_REMARKS = words("""
    a an and argument arguments aren't as at be but by can doesn't does for from has have if in is
    isn't it may must of on option options or parameter parameters so switch than that the then
    this to was when which will with work works
""")
"""What follows the name of an option in prose: ``the --password option``."""


def _is_announced(value: _Value) -> bool:
    """Tell whether an option that no row knows takes a secret by its name."""
    named = classify_name(value.option) if len(value.option) > 2 else None
    text = value.text
    if named is None or is_harmless(text, named.kind) or is_path(text):
        return False
    if value.begin == 0 and text.rstrip(".,;:") in _REMARKS:
        return False
    if named.trust is Trust.SURE or looks_random(text):
        return True
    return text.isdigit() and len(text) >= 4 and bool(_CODE_OPTION.search(value.option))


def _was_announced(value: _Value) -> bool:
    return MARK in value.text and _names_secret(value.option)


# --- what a segment tells --------------------------------------------------------------------


class _Secret(NamedTuple):
    """``word.text[begin:end]`` is a secret of this kind; ``rule`` says so."""

    word: Word
    begin: int
    end: int
    kind: str
    rule: str


_Secrets = Iterator[_Secret]


def _rest(word: Word, begin: int, kind: str, rule: str) -> _Secret:
    return _Secret(word, begin, len(word.text), kind, rule)


def _secrets(segment: SimpleCommand) -> _Secrets:
    known = list(known_commands(segment))
    # a quoted word may hold no command but options for one: --sshargs "-pw X"
    main = segment.words[segment.wrappers + (not segment.program.startswith("-")) :]
    if not any(command.arguments == main for command in known):
        known.append(Command(main, {}, ()))
    silent = {o: form for command in known for o, form in command.options.items() if form == "!"}
    for command in known:
        stop = any(place.form == "--" for row in command.rows for place in row.places)
        arguments = _sort_out(command.arguments, {**silent, **command.options}, stop=stop)
        for value in arguments.values:
            yield from _option_secrets(value)
        for row in command.rows:
            yield from _placed_secrets(row, command.arguments, arguments.plain)
        if command.arguments == main:
            yield from _secrets_of_any_program(segment, arguments)


def _option_secrets(value: _Value) -> _Secrets:
    word, begin, form = value.word, value.begin, value.form
    named = classify_name(value.option)
    if form == "?":
        if named is not None and _is_announced(value):
            yield _rest(word, begin, named.kind, "option")
        elif _is_login(value):
            yield from _half_secret(word, begin, ":")
        elif begin == 0:
            yield from _target_secret(word)
    elif not form:
        if _is_secret(value.text):
            yield _rest(word, begin, named.kind if named else "pass", "program")
    elif form == "~":
        for start, stop, kind in cookie_values(word.text, begin, len(word.text)):
            yield _Secret(word, start, stop, kind, "program")
    elif form != "_":
        yield from _half_secret(word, begin, form)


def _is_secret(value: str) -> bool:
    return not is_harmless(value, "pass") and not is_path(value)


_LOGIN_OPTIONS = words("""
    --auth --basic --basic-auth --cred --credentials --creds --http-auth --httpauth --login
    --proxy-auth --userpass -auth -basic
""")


def _is_login(value: _Value) -> bool:
    """Tell whether an option is given ``user:password``."""
    offset = login_offset(value.text)
    if offset is None:
        return False
    if value.option in {"-u", "--user"}:  # or the numbers of a user and a group
        return looks_random(value.text[offset:])
    return value.option in _LOGIN_OPTIONS


_SOURCES = frozenset(["file", "env", "fd", "stdin", "prompt", "disabled", "random", "selector"])


def _half_secret(word: Word, begin: int, mark: str) -> _Secrets:
    """Yield the second half of ``user:SECRET`` or ``pass:SECRET``; all of a lone token."""
    text = word.text[begin:]
    first, found, second = text.partition(":" if mark == ">" else mark)
    if not found or (mark == ":" and not second):
        text = first
        if mark not in {"/", ">", "="} and looks_random(text) and not is_harmless(text, "token"):
            yield _Secret(word, begin, begin + len(text), "token", "program")
    elif not (mark == ">" and first.lower() in _SOURCES):
        begin += len(first) + 1
        if _is_secret(_judged(word, begin)):
            yield _rest(word, begin, "pass", "program")


# --- places among the plain words ------------------------------------------------------------


def _placed_secrets(row: Row, arguments: Sequence[Word], plain: Sequence[Word]) -> _Secrets:
    behind = words_after(row.subcommand, plain)
    for form, given in row.places:
        if form[0] == "<" or form == "--" or not is_given(given, arguments):
            continue
        if form in {":", "@", "/", "="}:
            for word in behind:
                yield from _formed_secret(word, form)
        else:
            yield from _counted_secret(behind, form)


def _counted_secret(plain: Sequence[Word], form: str) -> _Secrets:
    number = int(form.rstrip("?:"))
    index = number - 1 if number > 0 else len(plain) + number
    if not 0 <= index < len(plain):
        return
    word = plain[index]
    if form.endswith(":"):
        yield from _half_secret(word, 0, ":")
    elif "://" not in word.text and (form[-1] != "?" or looks_random(word.text)):
        yield from _whole_secret(word)


def _whole_secret(word: Word) -> _Secrets:
    if _is_secret(_judged(word, 0)):
        yield _rest(word, 0, "pass", "program")


_SLASHED = lazy_pattern(r"[\w\"$#]{1,64}/([^@\s/]{1,128})(?:@.{0,200})?\Z")
_ENDING = lazy_pattern(r"\.\w{2,4}\Z")


def _formed_secret(word: Word, form: str) -> _Secrets:
    if form == "@":
        yield from _target_secret(word)
    elif form == "/":
        match = _SLASHED.match(word.text)
        if match and _is_secret(match[1]) and not _ENDING.search(match[1]):
            yield _Secret(word, *match.span(1), "pass", "program")
    elif form == "=" or "@" not in word.text:
        yield from _half_secret(word, 0, form)


_TARGET = lazy_pattern(r"(?:[\w.-]{1,64}[/\\])?([\w.$-]{1,64}):(\S{3,256})@([\w.\[\]:-]{2,128})\Z")
_NO_USERS = words("""
    acct arn bitbucket bun catalog crate data deno docker file flake git github gitlab gs http https
    image jdbc jsr link mailto nix node npm oci path pkg s3 sha256 sip sips ssh tel type urn
    workspace xmpp
""")
_VERSION = lazy_pattern(r"v?[0-9]{1,4}(?:\.[\w-]{1,12}){0,4}\Z")
_MIXED = lazy_pattern(r"[^A-Za-z]|[a-z][A-Z].{0,256}[a-z][A-Z]")


def _target_secret(word: Word) -> _Secrets:
    """Yield the password of ``user:SECRET@host``, which is no version and no path."""
    match = _TARGET.match(word.text)
    if match is None or match[1].lower() in _NO_USERS or match[3].startswith("sha"):
        return
    secret = match[2]
    if secret.isdigit() or _VERSION.match(secret) or secret.startswith("//"):
        return
    if _MIXED.search(secret) and _is_secret(secret):
        yield _Secret(word, *match.span(2), "pass", "target")


# --- rules for any program -------------------------------------------------------------------


def _secrets_of_any_program(segment: SimpleCommand, arguments: _Arguments) -> _Secrets:
    for word in segment.assignments:
        yield from _assigned_secret(word)
    runs_text = is_launcher(segment.program)
    for previous, word in itertools.pairwise(segment.words):
        if not (runs_text and word.quoted and " " in word.text and _RUNS_NEXT.match(previous.text)):
            yield from _assigned_secret(word)
    for word in arguments.plain:
        yield from _target_secret(word)
    spoken = segment.words[segment.wrappers :]
    yield from _login_secret(arguments.values)
    yield from _given_value(arguments.values, spoken)
    yield from _spoken_secrets(spoken)


_RUNS_NEXT = lazy_pattern(r"-[a-z]{0,4}c\Z|[^-]")
"""What stands before a line that is run: ``-c``, a host; and not before ``-e "NAME=a b"``."""

_ASSIGNMENT = lazy_pattern(r"(?P<name>[\w-][\w.\-\[\]]{1,120})\+?=")
_MORE_NAMES = lazy_pattern(r"[,;&?]\s?[\w.-]{1,64}=")
_CODE_VALUE = lazy_pattern(r"[\w.]{1,80}[(\[]|[(\[]|[\w.]{1,80}[,)]\Z")


def _assigned_secret(word: Word) -> _Secrets:
    match = _ASSIGNMENT.match(word.text)
    named = classify_name(match["name"]) if match else None
    if match is None or named is None or named.trust is Trust.QUERY:
        return
    value = _judged(word, match.end())
    if is_harmless(value, named.kind) or _MORE_NAMES.search(value):
        return
    if named.kind in {"auth", "pass"} and named.trust is not Trust.SURE:
        offset = login_offset(value)
        if offset is not None:
            yield _rest(word, match.end() + offset, named.kind, "assignment")
            return
    code = is_code(value) or (not word.quoted and _CODE_VALUE.match(value))
    if looks_random(value) or (named.trust is Trust.SURE and not code):
        yield _rest(word, match.end(), named.kind, "assignment")


_USER_OPTIONS = frozenset(["-u", "-U", "--user", "--username", "--login", "--email"])
_PORT_OR_NAME = lazy_pattern(r"(?:[\d.,:\[\]*-]{1,80}|[A-Za-z_-]{1,80})\Z")


def _login_secret(values: Sequence[_Value]) -> _Secrets:
    """Yield X of ``-u USER -p X`` where X is no port, and of ``-p X`` where X is plainly drawn."""
    with_user = any(value.option in _USER_OPTIONS for value in values)
    for value in values:
        text = value.text
        if value.form != "?" or value.option not in _PASSWORD_OPTIONS:
            continue
        likely = with_user and value.option in {"-p", "-P"} and not _PORT_OR_NAME.match(text)
        if (likely or _is_plainly_drawn(text)) and "/" not in text and _is_secret(text):
            yield _rest(value.word, value.begin, "pass", "login")


_PASSWORD_OPTIONS = frozenset(["-p", "-P", "-k", "-K", "-W"])


def _is_plainly_drawn(value: str) -> bool:
    """Tell whether a value can hardly be anything but a password: ``r7Kq2wXz9``."""
    if not (value.isascii() and value.isalnum() and 9 <= len(value) <= 64):
        return False
    counts = (sum(map(kind, value)) for kind in (str.isdigit, str.isupper, str.islower))
    return min(counts) >= 2 and looks_random(value)


def _given_value(values: Sequence[_Value], spoken: Sequence[Word]) -> _Secrets:
    """Yield X of ``--name db/password --value X``."""
    for value in values:
        if value.option in {"--value", "-value"} and value.form == "?" and _is_secret(value.text):
            things = [word.text.rsplit("/", 1)[-1] for word in spoken if word is not value.word]
            named = any(thing in _SECRET_THINGS or _names_secret(thing) for thing in things)
            if "SecureString" in things or (named and any(map(str.isdigit, value.text))):
                yield _rest(value.word, value.begin, "secret", "setting")


_SECRET_THINGS = frozenset(["secret", "secrets", "password", "credential", "credentials"])


def _spoken_secrets(spoken: Sequence[Word]) -> _Secrets:
    """Yield X of ``tool login X``, ``tool set api.password X`` and ``tool reset-password U X``."""
    setting = False
    for index, (word, following) in enumerate(itertools.pairwise(spoken)):
        value = following.text
        if index in {1, 2, 3} and (word.text in _VERBS or _TAKES_TOKEN.match(word.text)):
            yield from _login_words(spoken[index + 1 : index + 3])
        elif setting and not OPTION.match(value):
            kind = _setting_kind(word.text, value)
            if kind and _is_secret(value) and not is_harmless(value, kind):
                yield _rest(following, 0, kind, "setting")
        elif index and _CHANGES_PASSWORD.match(word.text):
            yield from _new_password(spoken[index + 1 :])
        setting = setting or word.text in _SETTERS


def _login_words(following: Sequence[Word]) -> _Secrets:
    """Yield the first word that looks drawn, of a token or of a user and a password."""
    for word in following:
        value = word.text
        if OPTION.match(value) or MARK in value:
            return
        if looks_random(value) and "." not in value and _is_secret(value):
            yield _rest(word, 0, "token", "login")
            return


_TAKES_TOKEN = lazy_pattern(
    r"(?:activate|add|apply|import|link|register|save|set|store|use)-(?:[a-z]{1,20}-){0,2}"
    r"(?:token|key|apikey|secret|licen[cs]e)\Z"
)
_CHANGES_PASSWORD = lazy_pattern(
    r"(?:[a-z-]{1,30}:)?(?:set|change|reset|update)[-_:]?(?:[a-z]{1,20}[-_:])?(?:password|passwd|pass|pw)\Z"
    r"|(?:password|passwd|pass)[-_:](?:set|change|reset|update)\Z"
)


def _new_password(following: Sequence[Word]) -> _Secrets:
    """Yield the last word, which a lone user's name must not be taken for."""
    plain = [word for word in following if not OPTION.match(word.text)]
    value = plain[-1].text if plain else ""
    told = len(plain) > 1 or looks_random(value)
    if told and any(map(str.isdigit, value)) and _is_secret(value):
        yield _rest(plain[-1], 0, "pass", "login")


_SETTING = lazy_pattern(r"[\w./:@\[\]\"'-]{2,160}\Z")
_COMPOSED = lazy_pattern(r"[_.:-]|[a-z][A-Z]")
_PLAIN_SETTINGS = frozenset(["password", "requirepass", "psk"])


def _setting_kind(name: str, value: str) -> str:
    """Return what a word announces as a setting's name, unlike a subcommand such as ``token``."""
    named = classify_name(name.rsplit("/", 1)[-1]) if _SETTING.match(name) else None
    if named is None or "(" in value:
        return ""
    if looks_random(value):
        return named.kind
    certain = _COMPOSED.search(name) or name.lower() in _PLAIN_SETTINGS
    return named.kind if certain and named.trust is Trust.SURE and not value.isalpha() else ""


# --- standard input --------------------------------------------------------------------------

_HERE = frozenset(["<<<", "<<", "<<-", "<"])
_PRODUCERS = frozenset(["echo", "printf", "print", "yes"])
_SWITCHES = lazy_pattern(r"-[A-Za-z]{1,4}\Z")
_STDIN_OPTION = lazy_pattern(
    r"--(?:[a-z-]{0,20}(?:password|passphrase|passwd|pass|token|secret|key|pin)-(?:from-)?stdin"
    r"|stdin-[a-z-]{0,20}(?:password|passphrase|token|secret|pass)|with-token|password-from-stdin)\Z"
)


def _stdin_form(segment: SimpleCommand) -> str:
    """Return ``<`` or ``<:`` where a segment reads secrets from standard input, else nothing."""
    named = any(
        _VARIABLE.match(word.text) and _names_secret(word.text) for word in segment.arguments
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


def _produced_words(producer: SimpleCommand) -> Iterator[Word]:
    """Yield the words that a segment prints."""
    program = program_name(producer.program)
    if program not in _PRODUCERS:
        return
    printed = [word for word in producer.arguments if not _SWITCHES.match(word.text)]
    if program == "printf" and len(printed) > 1 and "%" in printed[0].text:
        del printed[0]
    yield from printed


def _fed_secret(line: Word, form: str) -> int | None:
    """Return where the secret begins in a line of standard input."""
    begin = line.text.find(":") + 1 if form == "<:" else 0
    secret = (begin or form == "<") and not is_harmless(_judged(line, begin), "pass")
    return begin if secret else None


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
        redirections = [r for r in segment.redirections if r.operator in _HERE]
        form = _stdin_form(segment) if producers or redirections else ""
        if not form:
            return
        fed = [r.target for r in redirections if r.operator == "<<<"]
        for producer in producers:
            fed += _produced_words(producer)
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
                    yield from inner._fed_words(_produced_words(producer), form)

    def _fed_words(self, fed: Iterable[Word], form: str) -> Iterator[Finding]:
        for word in fed:
            begin = _fed_secret(word, form)
            if begin is not None:
                yield Finding(*self._span(word, begin, len(word.text)), "pass", "stdin")

    def _fed_body(self, redirection: Redirection, form: str) -> Iterator[Finding]:
        position = self._base + redirection.body_start
        for line in (redirection.body or "").splitlines(keepends=True):
            value = line.strip()
            start = position + line.index(value)
            word = Word(value, start, start + len(value), redirection.target.quoted, quoted=False)
            begin = _fed_secret(word, form)
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
