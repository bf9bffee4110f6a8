"""A command's arguments sorted out: options with their values, and plain words."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from flightrec.command_line import Word
from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_names import Trust, classify_name, words
from flightrec.secret_programs import CLUSTER, OPTION, SILENT
from flightrec.secret_text import cookie_values
from flightrec.secret_values import MARK, is_harmless, is_path, login_offset, looks_random
from flightrec.secret_words import (
    Secret,
    Secrets,
    half_secret,
    is_secret,
    judged,
    names_secret,
    rest,
    target_secret,
)


class Value(NamedTuple):
    """``word.text[begin:]``, given to ``option``; ``form`` as in the table, ``?`` if not there."""

    option: str
    form: str
    word: Word
    begin: int

    @property
    def text(self) -> str:
        """Return what the option is given, as it is to be judged."""
        return judged(self.word, self.begin)


class Arguments(NamedTuple):
    """A command's arguments sorted out: what options are given, and the words that are none."""

    values: Sequence[Value]
    plain: Sequence[Word]


WORD_CLUSTER_MAX = 4
"""``-erP`` may be three options, ``-host`` rather is one."""

_LONG_WORD = lazy_pattern(r"-[A-Za-z]{4,}\Z")


def sort_out(arguments: Sequence[Word], options: dict[str, str], *, stop: bool) -> Arguments:
    """Sort arguments out; with ``stop`` only those before the first plain word."""
    values: list[Value] = []
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
    return Arguments(values, plain)


def _is_option(text: str, options: dict[str, str]) -> bool:
    return OPTION.match(text) is not None or text in options or text.partition("=")[0] in options


def _inside(word: Word, options: dict[str, str]) -> Value | None:
    """Return the value in an option's own word: ``--name=X``, ``-pX``, ``/p:X``."""
    text = word.text
    head = OPTION.match(text)
    name = head[0] if head else text.partition("=")[0]
    mark = text[len(name) : len(name) + 1]
    behind_mark = Value(name, options.get(name, "?"), word, len(name) + 1)
    if (mark == "=" and (name in options or name[1:2] == "-")) or (mark == ":" and name[0] == "/"):
        return behind_mark
    if text in options:
        return None
    glued = next((o for o, form in options.items() if form == "." and text.startswith(o)), text[:2])
    form = options.get(glued, "!") if len(text) > len(glued) else "!"
    if form not in SILENT and (form or not _LONG_WORD.match(text)):
        return Value(glued, form.strip("."), word, len(glued))
    if mark == "=" or (mark == ":" and (name in options or names_secret(name))):
        return behind_mark
    return None


def _behind(word: Word, following: Word, options: dict[str, str]) -> Value | None:
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
    return Value(name, form, following, 0)


_CODE_OPTION = lazy_pattern(r"(?:pin|puk|otp|mfa|2fa)(?:[-_]?code)?\Z")
_REMARKS = words("""
    a an and argument arguments aren't as at be but by can doesn't does for from has have if in is
    isn't it may must of on option options or parameter parameters so switch than that the then
    this to was when which will with work works
""")
"""What follows the name of an option in prose: ``the --password option``."""


def _is_announced(value: Value) -> bool:
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


def _was_announced(value: Value) -> bool:
    return MARK in value.text and names_secret(value.option)


def option_secrets(value: Value) -> Secrets:
    """Yield what of an option's value is a secret."""
    word, begin, form = value.word, value.begin, value.form
    named = classify_name(value.option)
    if form == "?":
        if named is not None and _is_announced(value):
            yield rest(word, begin, named.kind, "option")
        elif _is_login(value):
            yield from half_secret(word, begin, ":")
        elif begin == 0:
            yield from target_secret(word)
    elif not form:
        if is_secret(value.text):
            yield rest(word, begin, named.kind if named else "pass", "program")
    elif form == "~":
        for start, stop, kind in cookie_values(word.text, begin, len(word.text)):
            yield Secret(word, start, stop, kind, "program")
    elif form != "_":
        yield from half_secret(word, begin, form)


_LOGIN_OPTIONS = words("""
    --auth --basic --basic-auth --cred --credentials --creds --http-auth --httpauth --login
    --proxy-auth --userpass -auth -basic
""")


def _is_login(value: Value) -> bool:
    """Tell whether an option is given ``user:password``."""
    offset = login_offset(value.text)
    if offset is None:
        return False
    if value.option in {"-u", "--user"}:  # or the numbers of a user and a group
        return looks_random(value.text[offset:])
    return value.option in _LOGIN_OPTIONS
