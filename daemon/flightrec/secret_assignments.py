"""Secrets that a name announces: ``NAME=value``, ``name: value``, JSON, query strings, markup.

How much is believed depends on the name (``secret_names``) and on the form. ``API_TOKEN=x`` in a
shell is plain; ``token: x`` may be a remark, so there the value must look drawn, or stand alone.
"""

import re

from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_names import Spans, Trust, classify_name
from flightrec.secret_values import is_code, is_harmless, login_offset, looks_random

NAME_GATES = (
    "pass", "pwd", "pw", "psk", "secret", "token", "key", "auth", "cred", "cookie", "mnemonic",
    "salt", "hmac", "jwt", "pat", "bearer", "otp", "csrf", "xsrf", "pin", "puk", "sig", "code",
    "ticket", "sid", "senha", "contrasena", "parola", "wachtwoord", "heslo", "kennwort", "mdp",
    "phrase", "words",
)  # fmt: skip
"""Every name that announces a secret holds one of these."""

JUDGED_MAX = 200
"""So much of a value is read before it is known to be a secret, as names may follow in it."""

_ASSIGNED = lazy_pattern(
    r"(?<![\w.\-‹])(?P<name>[\w.\-]{2,120}+)"
    r"(?:(?:\\{0,3}[\"']|%22)?[\]}]?(?P<space>[ \t]{0,12})"
    r"(?P<sep>=>|:=|={1,3}|:(?!:|//)|%3[ADad])(?P<gap>[ \t]{0,8})"
    r"|\\{0,3}[\"'](?:\][ \t]{1,2}|[ \t]{0,2}(?P<comma>,)[ \t]{0,2})(?=\\{0,3}[\"']))"
    r"(?P<open>[bBnNrRuU@$]?(?P<quote>\\{0,3}[\"'])|%22|\{(?=[^\s{}\"']{0,100}[0-9!#$%&*;][^\s{}\"']{0,100}\}))?"
)
_CALLED = frozenset(["(", "["])
_AFTER_CLOSING = frozenset(["", " ", "\n", "\t", "\r", ";", ",", ")", "|"])
_IN_DOUBLE = lazy_pattern(r'(?>(?:[^"\\\n]{1,4000}+|\\.){0,1000})')
_IN_SINGLE = lazy_pattern(r"(?>(?:[^'\\\n]{1,4000}+|\\.){0,1000})")
_BARE = lazy_pattern(
    r"(?>(?:[^\s\"'`,;&|<>(){}\[\]]{1,4000}+|,(?=[^\s\"'=,:]{1,64}(?:[\s,]|\Z))){1,1000})"
)
_BARE_IN_QUERY = lazy_pattern(r"[^\s\"'`&;|<>]{1,4000}")
_LINE = lazy_pattern(r"[^\n]{1,4000}")
_PARTED = lazy_pattern(r"[\s\"']")
_LINE_START = lazy_pattern(r"[\s>+*#$-]{0,40}(?:(?:export|set|ENV|ARG|declare -x)\s{1,4})?\Z")
_ENDED = lazy_pattern(r"[ \t]{0,8}(?:[,;)\]}\"'#]|//|\r?\n|\Z)")
_PHRASE = lazy_pattern(r"[A-Z][A-Za-z']{0,40}(?: [A-Za-z']{1,40}){1,40}[.!?]?\Z")
_SENTENCE = lazy_pattern(
    r"[A-Za-z']{1,40}(?:[ ,]{1,2}(?:[A-Za-z']{1,40}|[0-9]{1,3})){3,40}[.!?]?\Z"
)


def find_assignments(text: str) -> Spans:
    """Yield the values of all names that announce a secret."""
    covered = 0  # names inside a value that was found are part of it
    for match in _ASSIGNED.finditer(text):
        named = classify_name(match["name"]) if match.start() >= covered else None
        if named is None or text.endswith("checksum/", 0, match.start()):
            continue
        asked = match.start() > 0 and text[match.start() - 1] in "?&"
        start, end = _value_span(text, match, named.trust, asked=asked)
        value = text[start:end]
        if start == end or is_harmless(value, named.kind):
            continue
        if named.trust is Trust.SURE:
            secret = _is_secret(text, match, value, end)
        elif named.kind in {"auth", "pass"} and (offset := login_offset(value)) is not None:
            secret, start = True, start + offset
        else:
            secret = looks_random(value) and (named.trust is Trust.LIKELY or asked)
        if secret:
            covered = end = _whole_end(text, match, end, asked=asked)
            yield start, end, named.kind


def _value_span(text: str, match: re.Match[str], trust: Trust, *, asked: bool) -> tuple[int, int]:
    start, quote = match.end(), match["quote"] or match["open"]
    if not quote:
        return start, _bare_end(text, match, trust, asked=asked)
    if text[start : start + 1] in _AFTER_CLOSING:  # "export TOKEN=" in quotes: they end here
        return start, start
    if quote in "\"'":
        inside = (_IN_DOUBLE if quote == '"' else _IN_SINGLE).match(text, start)
        end = inside.end() if inside else start
    else:
        end = text.find("}" if quote == "{" else quote, start, start + 4000)
    if end < 0 or (quote in "\"'" and not text.startswith(quote, end)):  # its end was cut off
        line = _LINE.match(text, start)
        end = line.end() if line else start
    return start, end


def _bare_end(text: str, match: re.Match[str], trust: Trust, *, asked: bool) -> int:
    """Return the end of a value without quotes, as far as is needed to judge it."""
    start = match.end()
    bare = (_BARE_IN_QUERY if asked else _BARE).match(text, start, start + JUDGED_MAX)
    if bare is None:
        return start
    end = bare.end()
    called = text[end : end + 1] in _CALLED
    if called or trust is not Trust.SURE or not _begins_line(text, match):
        return end
    line = _LINE.match(text, start)
    rest = line[0].rstrip(" \t\r,;") if line else ""
    whole = start + len(rest)  # "password: a&b;c" of a configuration file
    return whole if whole > end and not _PARTED.search(rest) else end


def _whole_end(text: str, match: re.Match[str], end: int, *, asked: bool) -> int:
    """Return where a value ends of which perhaps only the beginning was judged."""
    if match["open"] or end < match.end() + JUDGED_MAX:
        return end
    bare = (_BARE_IN_QUERY if asked else _BARE).match(text, match.end())
    return max(end, bare.end()) if bare else end


def _begins_line(text: str, match: re.Match[str]) -> bool:
    line_start = text.rfind("\n", max(0, match.start() - 60), match.start()) + 1
    return _LINE_START.match(text[line_start : match.start()]) is not None


def _is_secret(text: str, match: re.Match[str], value: str, end: int) -> bool:
    """Tell whether the value of a name that is surely a secret's is one."""
    if match["comma"]:
        in_call = text[max(0, match.start() - 2) : match.start() - 1] == "("
        return looks_random(value) or (in_call and not value.isalpha())
    if match["open"]:
        plain = match["sep"] == "=" and not match["gap"]
        return plain or not (_SENTENCE if match["sep"] != "=" else _PHRASE).match(value)
    if text[end : end + 1] in _CALLED or is_code(value) or match["sep"] in {"==", "==="}:
        return False
    if match["gap"] or match["space"]:
        return looks_random(value) or (
            _ENDED.match(text, end) is not None and _stands_alone(value, match["name"])
        )
    if match["sep"] != ":":
        return True
    return looks_random(value) and (len(value) >= 16 or "pass" in match["name"].lower())


def _stands_alone(value: str, name: str) -> bool:
    """Tell whether a lone word after ``name:`` is a value rather than a remark."""
    name = name.lower()
    if name == "passwd":  # the program speaks: "passwd: unchanged"
        return False
    letters = re.sub(r"[\W_]", "", value)
    plain = letters.isalpha() and (len(letters) < 16 or _CAMEL.match(letters) is not None)
    return not plain or (("pass" in name or "pwd" in name) and value.isalnum())


_CAMEL = lazy_pattern(r"[A-Z]?[a-z]{1,40}(?:[A-Z][a-z]{1,40}){0,8}\Z|[A-Z]{1,80}\Z")
