"""What a name tells about its value.

A name is taken apart (``awsSecretAccessKey``, ``DB_PASSWORD``, ``--api-key``) and judged by its
parts. The last word for a secret in it decides, unless a word after it turns the name into
something else (``PASSWORD_FILE``, ``TOKEN_TTL``) or one before it does (``MAX_TOKENS``,
``public_key``, ``--no-password``).
"""

import enum
import functools
from collections.abc import Iterator
from typing import NamedTuple

from flightrec.lazy_pattern import lazy_pattern

Spans = Iterator[tuple[int, int, str]]
"""Secrets in a text: start, end (code points) and kind."""


class Trust(enum.IntEnum):
    """How much a name alone tells about its value."""

    QUERY = 1
    """A secret in a URL's query or in a cookie, if it looks random: ``sig=``, ``code=``."""

    LIKELY = 2
    """A secret if it looks random: ``key:``, ``--auth``, ``tokens=``."""

    SURE = 3
    """A secret whatever it looks like, unless it refers to one."""


class Named(NamedTuple):
    """A name that announces a secret; ``kind`` is what the placeholder shows."""

    kind: str
    trust: Trust


def words(text: str) -> frozenset[str]:
    """Return the words of a table that is written as text."""
    return frozenset(text.split())


_NOUNS = {
    word: Named(kind, trust)
    for kind, trust, nouns in (
        ("pass", Trust.SURE, "password passwd passw pwd pass pw pswd psw psk userpw"),
        ("pass", Trust.SURE, "passwort kennwort senha contrasena parola wachtwoord heslo mdp"),
        ("phrase", Trust.SURE, "passphrase passcode mnemonic"),
        ("token", Trust.SURE, "token"),
        ("secret", Trust.SURE, "secret"),
        ("cookie", Trust.LIKELY, "cookie cookies"),
        ("token", Trust.LIKELY, "tokens jwt pat bearer otp totp csrf xsrf"),
        ("secret", Trust.LIKELY, "secrets salt hmac"),
        ("pass", Trust.LIKELY, "passwords pin puk cred creds credential credentials"),
        ("auth", Trust.LIKELY, "auth authorization authentication"),
        ("key", Trust.LIKELY, "key keys apikeys"),
        ("sig", Trust.QUERY, "sig signature"),
        ("code", Trust.QUERY, "code ticket"),
        ("session", Trust.QUERY, "session sessionid sessid jsessionid phpsessid sid"),
    )
    for word in nouns.split()
}

_ENDINGS = (
    ("password", Named("pass", Trust.SURE)),
    ("passwd", Named("pass", Trust.SURE)),
    ("passphrase", Named("phrase", Trust.SURE)),
    ("secret", Named("secret", Trust.SURE)),
    ("token", Named("token", Trust.SURE)),
    ("pwd", Named("pass", Trust.SURE)),
    ("pass", Named("pass", Trust.SURE)),
)
"""Words written together: ``pgpassword``, ``authtoken``, ``clientsecret``."""

_ENGLISH = words("""
    allpass bandpass bypass compass encompass fastpass highpass keepass lastpass lowpass multipass
    nopasswd onepass overpass proxypass surpass trespass twopass underpass
""")
"""Words that end like a password and are none."""

_KEY_OF = words("""
    access account admin api auth client consumer deploy encryption hmac integration jwt license
    master preshared private recovery secret service shared signing storage subscription unseal
""")
"""``<one of these> key`` is a secret; any other key is one only if it looks random."""

_JOINED_KEY = lazy_pattern(
    r"(?:access|account|admin|api|app|auth|client|consumer|encryption|license|master|private|"
    r"secret|service|session|shared|storage|subscription)keys?\Z"
)

_NO_SECRET_AFTER = words("""
    address age agent alg algo algorithm app arn attempts audience backend board budget cache
    change chars class classes cmd column command config cost count counter created days
    description dir directory domain email enabled encryption endpoint engine env error exp
    expiration expired expires expiry fd field file filename files folder format generator group
    hashes header help helper hint host id identifier ids index input interval ip issuer item
    label lastindex len length level lifetime limit limits link list location lookup mail manager
    match max method min minlen mismatch mode name names number origin owner page parameter path
    pattern policies policy port position prefix prompt provider realm ref reference regex region
    repeat required requirement reset retries ring role rotation rules scheme scope scopes server
    size slot source spec state status stdin store stores strategy strength suffix template
    timeout title ttl type types uri uris url urls usage user username valid validation validator
    var variable version view window word words workers
""")

_NO_SECRET_BEFORE = words("""
    allow arrow ask avg bad batch bos cache cached can clear cls completion context continuation
    delete disable drop dry edit enable end eos existing export fetch final foreign forgot gen
    generate generated generation get has host hot idempotency image import init input invalid is
    keep last list locate lsign mask match max min missing new next no num number object optional
    output pad page pagination partition per primary prompt pub public publishable pull quick recv
    remove require required reset resume revoke rotate row search send sep show skip sort special
    starting stop sync tests total unexpected unk unknown unset use used valid verify with without
""")
_STILL_A_PASSWORD = words("new next host cache final end last get root")
"""Of the words above, those that leave a password one: ``--new-password``, ``CACHE_PASSWORD``."""

_PARTS = lazy_pattern(r"[A-Z]{1,64}(?![a-z])|[A-Z]?[a-z]{1,64}")
_SOURCE = lazy_pattern(
    r"\.(?:c|h|cc|cpp|hpp|cs|go|rs|py|pyi|js|jsx|ts|tsx|mjs|java|kt|rb|php|sh|lua|pl|pm|swift|scala"
    r"|md|rst|txt|json|ya?ml|toml|html?|css|sql|log|conf|cfg|ini|so|o|a|jar|class|lock)\Z"
)
_OPTION = lazy_pattern(r"\A[-+/]{1,2}(?:[DX](?=[A-Za-z]{2}))?")


@functools.lru_cache(maxsize=4096)
def classify_name(name: str) -> Named | None:
    """Return what ``name`` announces, or None where its value is no secret."""
    if name.lower() in {"pwd", "oldpwd"}:  # a folder in a shell, a password in a connection string
        return Named("token", Trust.SURE)
    if _SOURCE.search(name):
        return None
    parts = [part.lower() for part in _PARTS.findall(_OPTION.sub("", name))]
    if parts == ["pass"]:  # perhaps a count: "pass=12 fail=0"
        return Named("token", Trust.SURE)
    for index in range(len(parts) - 1, -1, -1):
        named = _noun(parts, index)
        if named is not None:
            if _vetoed(parts, index, named):
                return None
            inner = "." in name and _last_part_is_plain(name)
            return Named(named.kind, min(named.trust, Trust.LIKELY)) if inner else named
    return None


def _last_part_is_plain(name: str) -> bool:
    """Tell ``token.kind``, which is an attribute, from ``auth.token``."""
    parts = [part.lower() for part in _PARTS.findall(name.rsplit(".", 1)[-1])]
    return bool(parts) and all(_noun(parts, index) is None for index in range(len(parts)))


def _noun(parts: list[str], index: int) -> Named | None:
    part = parts[index]
    if part == "key":
        sure = any(word in _KEY_OF or word.endswith(("secret", "token")) for word in parts[:index])
        return Named("key", Trust.SURE if sure else Trust.LIKELY)
    if part in _NOUNS:
        return _NOUNS[part]
    if part in _ENGLISH:
        return None
    if part in {"phrase", "words"} and parts[index - 1] in {"seed", "recovery", "secret", "pass"}:
        return Named("phrase", Trust.SURE)
    if _JOINED_KEY.search(part):
        return Named("key", Trust.SURE)
    return next((named for ending, named in _ENDINGS if part.endswith(ending)), None)


def _vetoed(parts: list[str], index: int, named: Named) -> bool:
    if not _NO_SECRET_AFTER.isdisjoint(parts[index + 1 :]):
        return True
    before = _NO_SECRET_BEFORE.intersection(parts[:index])
    if named.kind in {"pass", "phrase", "secret"}:
        before -= _STILL_A_PASSWORD
    return bool(before)
