"""What makes a word of a command line, or a part of it, a secret."""

from collections.abc import Iterator
from typing import NamedTuple

from flightrec.command_line import Word
from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_names import Trust, classify_name, words
from flightrec.secret_values import is_harmless, is_path, is_variable, looks_random


class Secret(NamedTuple):
    """``word.text[begin:end]`` is a secret of this kind; ``rule`` says so."""

    word: Word
    begin: int
    end: int
    kind: str
    rule: str


Secrets = Iterator[Secret]


def rest(word: Word, begin: int, kind: str, rule: str) -> Secret:
    """Return a word from ``begin`` on as a secret."""
    return Secret(word, begin, len(word.text), kind, rule)


def names_secret(name: str) -> bool:
    """Tell whether a name surely announces a secret."""
    named = classify_name(name) if len(name) > 2 else None
    return named is not None and named.trust is Trust.SURE


def judged(word: Word, begin: int) -> str:
    """Return the rest of a word; without a dollar that is written as one and names no variable."""
    text = word.text[begin:]
    return text[1:] if word.literal and text[:1] == "$" and not is_variable(text) else text


def is_secret(value: str) -> bool:
    """Tell whether what stands in a secret's place is one, and no reference, example or path."""
    return not is_harmless(value, "pass") and not is_path(value)


_SOURCES = frozenset(["file", "env", "fd", "stdin", "prompt", "disabled", "random", "selector"])


def half_secret(word: Word, begin: int, mark: str) -> Secrets:
    """Yield the second half of ``user:SECRET`` or ``pass:SECRET``; all of a lone token."""
    text = word.text[begin:]
    first, found, second = text.partition(":" if mark == ">" else mark)
    if not found or (mark == ":" and not second):
        text = first
        if mark not in {"/", ">", "="} and looks_random(text) and not is_harmless(text, "token"):
            yield Secret(word, begin, begin + len(text), "token", "program")
    elif not (mark == ">" and first.lower() in _SOURCES):
        begin += len(first) + 1
        if is_secret(judged(word, begin)):
            yield rest(word, begin, "pass", "program")


_TARGET = lazy_pattern(r"(?:[\w.-]{1,64}[/\\])?([\w.$-]{1,64}):(\S{3,256})@([\w.\[\]:-]{2,128})\Z")
_NO_USERS = words("""
    acct arn bitbucket bun catalog crate data deno docker file flake git github gitlab gs http https
    image jdbc jsr link mailto nix node npm oci path pkg s3 sha256 sip sips ssh tel type urn
    workspace xmpp
""")
_VERSION = lazy_pattern(r"v?[0-9]{1,4}(?:\.[\w-]{1,12}){0,4}\Z")
_MIXED = lazy_pattern(r"[^A-Za-z]|[a-z][A-Z].{0,256}[a-z][A-Z]")


def target_secret(word: Word) -> Secrets:
    """Yield the password of ``user:SECRET@host``, which is no version and no path."""
    match = _TARGET.match(word.text)
    if match is None or match[1].lower() in _NO_USERS or match[3].startswith("sha"):
        return
    secret = match[2]
    if secret.isdigit() or _VERSION.match(secret) or secret.startswith("//"):
        return
    if _MIXED.search(secret) and is_secret(secret):
        yield Secret(word, *match.span(2), "pass", "target")
