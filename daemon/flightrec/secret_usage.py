"""How secrets are given to any program, known or not.

A variable or an argument ``NAME=X``, ``-u USER -p X``, ``login X``, ``set api.password X``,
``reset-password USER X``, ``--name db/password --value X``, ``user:X@host``.
"""

import itertools
from collections.abc import Sequence

from flightrec.command_line import SimpleCommand, Word
from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_names import Trust, classify_name, words
from flightrec.secret_options import Arguments, Value
from flightrec.secret_programs import OPTION, is_launcher
from flightrec.secret_values import MARK, is_code, is_harmless, login_offset, looks_random
from flightrec.secret_words import (
    Secrets,
    is_secret,
    judged,
    names_secret,
    rest,
    target_secret,
)

VERBS = words("""
    activate add-authtoken api-key apikey auth authenticate authorize authorize-account authtoken
    login redeem register set-token token unlock
""")
SETTERS = words("""
    --add --global --set -Ux -gx -x /set ARG ENV add config config:set configure connect create
    edit env:set import modify put set setenv setx update write
""")


def secrets_of_any_program(segment: SimpleCommand, arguments: Arguments) -> Secrets:
    """Yield the secrets that a segment's words tell whatever its program is."""
    for word in segment.assignments:
        yield from _assigned_secret(word)
    runs_text = is_launcher(segment.program)
    for previous, word in itertools.pairwise(segment.words):
        if not (runs_text and word.quoted and " " in word.text and _RUNS_NEXT.match(previous.text)):
            yield from _assigned_secret(word)
    for word in arguments.plain:
        yield from target_secret(word)
    spoken = segment.words[segment.wrappers :]
    yield from _login_secret(arguments.values)
    yield from _given_value(arguments.values, spoken)
    yield from _spoken_secrets(spoken)


_RUNS_NEXT = lazy_pattern(r"-[a-z]{0,4}c\Z|[^-]")
"""What stands before a line that is run: ``-c``, a host; and not before ``-e "NAME=a b"``."""

_ASSIGNMENT = lazy_pattern(r"(?P<name>[\w-][\w.\-\[\]]{1,120})\+?=")
_MORE_NAMES = lazy_pattern(r"[,;&?]\s?[\w.-]{1,64}=")
_CODE_VALUE = lazy_pattern(r"[\w.]{1,80}[(\[]|[(\[]|[\w.]{1,80}[,)]\Z")


def _assigned_secret(word: Word) -> Secrets:
    match = _ASSIGNMENT.match(word.text)
    named = classify_name(match["name"]) if match else None
    if match is None or named is None or named.trust is Trust.QUERY:
        return
    value = judged(word, match.end())
    if is_harmless(value, named.kind) or _MORE_NAMES.search(value):
        return
    if named.kind in {"auth", "pass"} and named.trust is not Trust.SURE:
        offset = login_offset(value)
        if offset is not None:
            yield rest(word, match.end() + offset, named.kind, "assignment")
            return
    code = is_code(value) or (not word.quoted and _CODE_VALUE.match(value))
    if looks_random(value) or (named.trust is Trust.SURE and not code):
        yield rest(word, match.end(), named.kind, "assignment")


_USER_OPTIONS = frozenset(["-u", "-U", "--user", "--username", "--login", "--email"])
_PORT_OR_NAME = lazy_pattern(r"(?:[\d.,:\[\]*-]{1,80}|[A-Za-z_-]{1,80})\Z")


def _login_secret(values: Sequence[Value]) -> Secrets:
    """Yield X of ``-u USER -p X`` where X is no port, and of ``-p X`` where X is plainly drawn."""
    with_user = any(value.option in _USER_OPTIONS for value in values)
    for value in values:
        text = value.text
        if value.form != "?" or value.option not in _PASSWORD_OPTIONS:
            continue
        likely = with_user and value.option in {"-p", "-P"} and not _PORT_OR_NAME.match(text)
        if (likely or _is_plainly_drawn(text)) and "/" not in text and is_secret(text):
            yield rest(value.word, value.begin, "pass", "login")


_PASSWORD_OPTIONS = frozenset(["-p", "-P", "-k", "-K", "-W"])


def _is_plainly_drawn(value: str) -> bool:
    """Tell whether a value can hardly be anything but a password: ``r7Kq2wXz9``."""
    if not (value.isascii() and value.isalnum() and 9 <= len(value) <= 64):
        return False
    counts = (sum(map(kind, value)) for kind in (str.isdigit, str.isupper, str.islower))
    return min(counts) >= 2 and looks_random(value)


def _given_value(values: Sequence[Value], spoken: Sequence[Word]) -> Secrets:
    """Yield X of ``--name db/password --value X``."""
    for value in values:
        if value.option in {"--value", "-value"} and value.form == "?" and is_secret(value.text):
            things = [word.text.rsplit("/", 1)[-1] for word in spoken if word is not value.word]
            named = any(thing in _SECRET_THINGS or names_secret(thing) for thing in things)
            if "SecureString" in things or (named and any(map(str.isdigit, value.text))):
                yield rest(value.word, value.begin, "secret", "setting")


_SECRET_THINGS = frozenset(["secret", "secrets", "password", "credential", "credentials"])


def _spoken_secrets(spoken: Sequence[Word]) -> Secrets:
    """Yield X of ``tool login X``, ``tool set api.password X`` and ``tool reset-password U X``."""
    setting = False
    for index, (word, following) in enumerate(itertools.pairwise(spoken)):
        value = following.text
        if index in {1, 2, 3} and (word.text in VERBS or _TAKES_TOKEN.match(word.text)):
            yield from _login_words(spoken[index + 1 : index + 3])
        elif setting and not OPTION.match(value):
            kind = _setting_kind(word.text, value)
            if kind and is_secret(value) and not is_harmless(value, kind):
                yield rest(following, 0, kind, "setting")
        elif index and _CHANGES_PASSWORD.match(word.text):
            yield from _new_password(spoken[index + 1 :])
        setting = setting or word.text in SETTERS


def _login_words(following: Sequence[Word]) -> Secrets:
    """Yield the first word that looks drawn, of a token or of a user and a password."""
    for word in following:
        value = word.text
        if OPTION.match(value) or MARK in value:
            return
        if looks_random(value) and "." not in value and is_secret(value):
            yield rest(word, 0, "token", "login")
            return


_TAKES_TOKEN = lazy_pattern(
    r"(?:activate|add|apply|import|link|register|save|set|store|use)-(?:[a-z]{1,20}-){0,2}"
    r"(?:token|key|apikey|secret|licen[cs]e)\Z"
)
_CHANGES_PASSWORD = lazy_pattern(
    r"(?:[a-z-]{1,30}:)?(?:set|change|reset|update)[-_:]?(?:[a-z]{1,20}[-_:])?(?:password|passwd|pass|pw)\Z"
    r"|(?:password|passwd|pass)[-_:](?:set|change|reset|update)\Z"
)


def _new_password(following: Sequence[Word]) -> Secrets:
    """Yield the last word, which a lone user's name must not be taken for."""
    plain = [word for word in following if not OPTION.match(word.text)]
    value = plain[-1].text if plain else ""
    told = len(plain) > 1 or looks_random(value)
    if told and any(map(str.isdigit, value)) and is_secret(value):
        yield rest(plain[-1], 0, "pass", "login")


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
