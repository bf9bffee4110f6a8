"""Secrets that any text shows by itself: output, configuration, URLs and command lines alike.

Each rule has gates, literals of which the text must hold one: most text holds none, and looking
for a literal costs a hundredth of a regular expression. Every quantifier is bounded and matches
begin at the edge of a word, so that time is linear in the length of the text.
"""

import functools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_assignments import NAME_GATES, find_assignments
from flightrec.secret_names import Spans, Trust, classify_name
from flightrec.secret_pem import find_private_keys
from flightrec.secret_statements import (
    find_manifest_data,
    find_netrc,
    find_paired,
    find_stated,
)
from flightrec.secret_tables import VENDORS
from flightrec.secret_values import is_harmless, looks_random


class Finding(NamedTuple):
    """A secret at ``start`` to ``end`` (code points), what it is and the rule that says so."""

    start: int
    end: int
    kind: str
    rule: str


def find_in_text(text: str) -> list[Finding]:
    """Return the secrets that ``text`` shows by itself, in no order; they may overlap."""
    found = [*_vendor_tokens(text)]
    lower = text.lower()
    for name, gates, find in _RULES:
        for gate in gates:
            if gate in lower:
                found += [Finding(start, end, kind, name) for start, end, kind in find(text)]
                break
    return found


# --- tokens of vendors -----------------------------------------------------------------------

_RUN = lazy_pattern(r"[A-Za-z0-9_+=~%-]{14}")
"""Every token holds one, except those in the URLs of some hooks; most command lines do not."""

_PLAIN_WORD = lazy_pattern(r"[a-z_./:-]{1,16384}\Z")
_LONG_WORD = lazy_pattern(r"[^\s\"'<>(){},;]{14,16384}")
_LEFT = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))"
_RIGHT = r"(?![A-Za-z0-9_])"
_REST = lazy_pattern(r"[A-Za-z0-9_=-]{1,16384}")
"""Of a token that is longer than its maker's tokens are known to be."""

_MASKED = lazy_pattern(r"[xX*.]{6}|EXAMPLE")

_LITERALS = tuple(
    (literal, index) for index, vendor in enumerate(VENDORS) for literal in vendor.literals.split()
)


def _vendor_tokens(text: str) -> Iterator[Finding]:
    if not _RUN.search(text) and "hooks." not in text:
        return
    words = " ".join([word for word in _LONG_WORD.findall(text) if not _PLAIN_WORD.match(word)])
    if not words:
        return
    for index in dict.fromkeys(index for literal, index in _LITERALS if literal in words):
        for match in _vendor_pattern(index).finditer(text):
            if not _MASKED.search(match[0]):
                start, end = match.span(match.lastindex or 0)
                rest = _REST.match(text, end)
                yield Finding(start, rest.end() if rest else end, VENDORS[index].name, "vendor")


@functools.cache
def _vendor_pattern(index: int) -> re.Pattern[str]:
    pattern = VENDORS[index].pattern
    left = _LEFT if pattern.startswith("^") else ""
    right = _RIGHT if pattern.endswith("$") else ""
    return re.compile(left + pattern.removeprefix("^").removesuffix("$") + right)


# --- URLs and connection strings -------------------------------------------------------------

_URL = lazy_pattern(r"://([^\s'\"`<>|]{1,1024})")
_PATH_START = lazy_pattern(r"[/?#]")
_NO_PASSWORDS = ("", "x-oauth-basic")
"""With these the user is the token."""

_PORT = lazy_pattern(r"(?:[0-9]{1,5}|port|PORT)(?:[/?#]|\Z)|//")


def _url_passwords(text: str) -> Spans:
    for match in _URL.finditer(text):
        span = _userinfo_secret(match[1])
        if span is not None:
            offset = match.start(1)
            yield offset + span[0], offset + span[1], "url"


def _userinfo_secret(rest: str) -> tuple[int, int] | None:
    """Return the span of the secret in what follows ``://``: a password, or a token as user."""
    path = _PATH_START.search(rest)
    at = rest.rfind("@", 0, path.start() if path else len(rest))
    if at < 0:
        at = rest.find("@")  # perhaps behind a password that ought to be percent-encoded
        user, colon, password = rest[: max(at, 0)].partition(":")
        if not colon or "/" in user or user.startswith("[") or _PORT.match(password):
            return None
    user, colon, password = rest[:at].partition(":")
    if colon and password not in _NO_PASSWORDS:
        return None if is_harmless(password, "pass") else (len(user) + 1, at)
    return (0, len(user)) if len(user) >= 16 and looks_random(user) else None


# --- headers and cookies ---------------------------------------------------------------------

_AUTHORIZATION = lazy_pattern(
    r"(?i)(?P<before>[\"'])?(?<![a-z])(?:proxy-)?authorization(?:\\{0,3}[\"'])?\s{0,2}"
    r"(?:=>|[:=,])\s{0,2}"
    r"(?P<quote>\\{0,3}[\"'])?(?P<value>[^\r\n]{1,4000})"
)
_SCHEME = lazy_pattern(r"\s{0,2}([A-Za-z][\w-]{1,24})\s{1,3}(?=\S)")
_MANY_PARTS = frozenset(["digest", "oauth", "hawk", "signature", "aws4-hmac-sha256", "scram"])
_CREDENTIAL = lazy_pattern(r"\s{0,2}([^\s\"'`\\,;]{1,4000})")
_BEARER = lazy_pattern(r"(?i)\bbearer['\"]?[ \t:=]{1,3}['\"]?([A-Za-z0-9._~+/=-]{8,4000})")


def _authorizations(text: str) -> Spans:
    for match in _AUTHORIZATION.finditer(text):
        quote = match["quote"] or match["before"]
        value = match["value"].split(quote, 1)[0] if quote else match["value"]
        start = match.start("value")
        scheme = _SCHEME.match(value)
        if scheme and scheme[1].lower() in _MANY_PARTS:
            yield start + scheme.end(), start + len(value.rstrip()), "header"
            continue
        credential = _CREDENTIAL.match(value, scheme.end() if scheme else 0)
        listed = "," in text[match.start() : start]
        certain = scheme is not None or (quote is not None and not listed)
        if credential and _is_credential(credential[1], certain=certain):
            yield start + credential.start(1), start + credential.end(1), "header"


def _is_credential(value: str, *, certain: bool) -> bool:
    if is_harmless(value, "token"):
        return False
    return looks_random(value) or (certain and len(value) >= 6 and not value.isalpha())


def _bearer_tokens(text: str) -> Spans:
    for match in _BEARER.finditer(text):
        if looks_random(match[1]) and not is_harmless(match[1], "token"):
            yield *match.span(1), "token"


_COOKIE_HEADER = lazy_pattern(r"(?i)\bcookies?[\"']?\s{0,2}[:=]\s{0,2}[\"']?([^\r\n\"']{3,4000})")
_COOKIE = lazy_pattern(r"([\w.\-\[\]]{1,80}+)=([^;\s\"',]{1,4000})")
_COOKIE_ATTRIBUTES = frozenset(
    ["path", "domain", "expires", "max-age", "samesite", "version", "priority", "comment"]
)


def _cookie_headers(text: str) -> Spans:
    for match in _COOKIE_HEADER.finditer(text):
        yield from cookie_values(text, *match.span(1))


def cookie_values(text: str, start: int, end: int) -> Spans:
    """Yield the values of the cookies in ``text[start:end]`` (``name=value; name=value``)."""
    for match in _COOKIE.finditer(text, start, end):
        name, value = match[1], match[2]
        if name.lower() in _COOKIE_ATTRIBUTES or is_harmless(value, "cookie"):
            continue
        named = classify_name(name)
        if looks_random(value) or (named is not None and named.trust is Trust.SURE):
            yield *match.span(2), "cookie"


# --- forms that one expression can tell ------------------------------------------------------


def _forms(kind: str, *patterns: str) -> Callable[[str], Spans]:
    """Return a search for group 1 of these expressions, compiled when first needed."""

    @functools.cache
    def compiled() -> list[re.Pattern[str]]:
        return [re.compile(pattern) for pattern in patterns]

    def find(text: str) -> Spans:
        for pattern in compiled():
            for match in pattern.finditer(text):
                if not is_harmless(match[1], kind):
                    yield *match.span(1), kind

    return find


_QUOTED = r"[Nn]?\\{0,3}['\"]([^'\"\n]{1,400}?)(?=\\{0,3}['\"\n]|\Z)"
_IDENTIFIED = (
    r"(?i)\bidentified\s{1,4}(?:with\s{1,4}\S{1,60}\s{1,4})?(?:by|as)\s{1,4}"
    rf"(?:values\s{{1,4}}|password\s{{1,4}})?{_QUOTED}"
)
_SET_PASSWORD = (
    r"(?i)\bset\s{1,4}password\s{1,4}(?:for\s{1,4}\S{1,120}\s{1,4})?(?:=|to)\s{0,4}" + _QUOTED
)
_SQL = _forms(
    "pass",
    rf"(?i)\bpragma\s{{1,4}}(?:hex)?(?:re)?key\s{{0,4}}=\s{{0,4}}{_QUOTED}",
    _IDENTIFIED,
    _SET_PASSWORD,
    r"(?i)\bidentified\s{1,4}by\s{1,4}(?=[^\s;'\"]{0,60}[0-9#$!])([^\s;'\"]{4,100})",
    r"(?i)\bpassword(?:\s{1,4}|\s{0,4}\(\s{0,4})[Nn]?\\{0,3}'([^'\"\n]{1,400})\\{0,3}'",
    rf"(?i)\bpgp_sym_(?:en|de)crypt\([^()\n]{{1,200}},\s{{0,4}}{_QUOTED}",
)

_LOGIN_CALL = (
    r"(?i)\b\w{0,30}(?:auth|login|authenticate|password|createuser|signin)\s{0,2}=?\s{0,2}"
    r"\(\s{0,4}[bru]?\\{0,3}['\"][^'\"\n]{0,100}['\"]\s{0,2},\s{0,4}[bru]?"
    r"\\{0,3}['\"]([^'\"\n]{1,400})"
)
_SECURE_STRING = (
    r"(?i)\bConvertTo-SecureString\s{1,4}(?:-String\s{1,4})?[\"']?([^\s\"'$-][^\s\"']{1,400})"
)
_REGISTRY = (
    r"(?i)/v\s{1,4}[\w.-]{0,60}(?:password|secret|token)[\w.-]{0,40}(?:\s{1,4}/t\s{1,4}\w{1,20})?"
    r"\s{1,4}/d\s{1,4}[\"']?([^\s\"']{1,400})"
)
_SETTER_CALL = (
    r"(?i)\b\w{0,30}(?:password|passwd|passphrase|secret|token|api_?key)\s{0,2}\(\s{0,4}[bru]?"
    r"\\{0,3}['\"](?=[^'\"\n]{0,100}[0-9])([^'\"\s]{6,400})\\{0,3}['\"]\s{0,4}\)"
)
_PRINTED = (
    r"(?i)(?:pass(?:word|phrase|wd)?|secret|token)[-_](?:file|command|cmd)[= ]{1,2}[\"']?"
    r"(?:<\(|\$\()?\s{0,4}(?:echo|printf)\s{1,4}(?:-\w{1,4}\s{1,4}|[\"']?%s[\"']?\s{1,4})?"
    r"[\"']?([^\s\"')]{4,400})"
)
_CALLS = _forms("pass", _LOGIN_CALL, _SETTER_CALL, _SECURE_STRING, _REGISTRY, _PRINTED)

_REDIS_AUTH = (
    r"\bAUTH\s{1,4}(?:default\s{1,4})?[\"']?([^\s\"'=:-][^\s\"']{5,400})[\"']?"
    r"(?=\s{0,4}(?:[\r\n\\]|\Z))"
)
_REDIS_SETTING = (
    r"(?i)\b(?:requirepass|masterauth)[ \t:=]{1,4}[\"']?([^\s\"']{1,400})[\"']?"
    r"(?=[ \t]{0,4}(?:[\r\n;&|]|\Z))"
)
_EXPECT = (
    r"(?i)assword[^\n]{0,80}send\s{1,4}(?:--\s{1,4})?\\{0,3}[\"']([^\"'\n]{1,200}?)\\{1,3}[rn]"
)
_SERVERS = _forms(
    "pass",
    _REDIS_SETTING,
    r"(?i)\bACL\s{1,4}SETUSER\s[^\n>]{1,100}>(\S{1,400})",
    _REDIS_AUTH,
    r"(?i)\bauth\s{1,4}([^\s\"']{1,400})[\"']?\s{0,4}\|\s{0,4}\S{0,80}(?:redis|valkey|keydb)-cli",
    _EXPECT,
)
_PGPASS = _forms(
    "pass",
    r"(?:^|(?<=[\s\"']))[\w.*-]{1,100}:(?:[0-9]{2,5}|\*):[\w*.-]{1,64}:[\w*.-]{1,64}"
    r":(?![0-9]{1,8}(?![^\s:\"']))([^\s:\"']{4,200})(?=[\s\"']|\Z)",
)
_HASHES = _forms(
    "hash",
    r"(\$(?:1|2[abxy]?|5|6|7|y|gy|apr1|sha1|argon2(?:id|i|d)|scrypt|pbkdf2[\w-]{0,20})"
    r"\$[^\s:'\"]{8,400})",
    r"\b((?:pbkdf2_sha\d{1,3}|bcrypt_sha256|argon2)\$[^\s'\"]{16,400})",
    r"\{(?:SSHA|SHA|SMD5|CRYPT|SSHA256|SSHA512)\}([^\s'\"]{8,200})",
    r"(?<![0-9a-f])([0-9a-f]{32}:[0-9a-f]{32})(?::::|(?![0-9a-f:]))",
)
_CONNECTIONS = _forms(
    "url",
    r"(?<![\w.-])[\w.-]{1,64}:([^\s'\"@/]{1,256})@(?:tcp|unix|udp)?\(",
    r"(?i)jdbc:oracle:\w{1,8}:[\w$#.-]{1,64}/([^\s'\"@]{1,128})@",
)

_RULES: tuple[tuple[str, tuple[str, ...], Callable[[str], Spans]], ...] = (
    ("private-key", ("private key", "private-lines", "private-mac"), find_private_keys),
    ("url", ("://",), _url_passwords),
    ("connection", ("@tcp(", "@unix(", "@(", "jdbc:oracle"), _CONNECTIONS),
    ("authorization", ("authorization",), _authorizations),
    ("bearer", ("bearer",), _bearer_tokens),
    ("cookie", ("cookie",), _cookie_headers),
    ("name", NAME_GATES, find_assignments),
    ("paired", ("value", "</"), find_paired),
    ("netrc", (" password ", "\npassword "), find_netrc),
    ("stated", ("pass", "token", "secret", " key"), find_stated),
    ("manifest", ("kind: secret", '"kind": "secret"', '"kind":"secret"'), find_manifest_data),
    ("sql", ("identified", "password", "pgp_sym_", "pragma "), _SQL),
    ("call", ('("', "('", '(\\"', "(b'", '(b"', "( '", '( "', "securestring", "/v ", "echo ",
              "printf "), _CALLS),
    ("server", ("requirepass", "masterauth", "auth ", "setuser", "assword"), _SERVERS),
    ("pgpass", ("pgpass", ":5432:", ":*:"), _PGPASS),
    ("hash", ("$1$", "$2a$", "$2b$", "$2x$", "$2y$", "$5$", "$6$", "$7$", "$y$", "$gy$", "$apr1$",
              "$argon2", "$scrypt$", "$sha1$", "$pbkdf2", "pbkdf2_", "bcrypt_", "argon2$", "{s",
              "{crypt}", "aad3b435"), _HASHES),
)  # fmt: skip
"""Name of the rule, its gates in lower case, the search."""
