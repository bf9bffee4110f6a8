"""What a name tells about its value, and which values are no secrets.

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

MARK = "‹"
"""Fills the place of placeholders while a text is searched: no secret holds one."""

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

_DERIVED = words("hash digest base prod dev staging test live")
"""Words that leave what stands before them as it is: ``PASSWORD_HASH``, ``SECRET_KEY_BASE``."""

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


_REFERENCE = lazy_pattern(
    r"\$(?!(?:y|gy|apr1|sha1|argon2\w{0,2}|scrypt|pbkdf2[\w-]{0,20})\$)"  # a hash, no expansion
    r"(?:[A-Za-z_{(\[]|[0-9@*#?!]?\Z)"
    r"|`|%[sdrvqf]\Z|%\(\w{1,40}\)s|%[A-Za-z_]\w{0,64}%"
    r"|\{\d?\}|\{\{|\{[A-Za-z_$][\w.\[\]]{0,64}\}|<[^<>]{0,80}>\Z|\[[A-Za-z_ -]{0,40}\]|\[[A-Z]{4}"
    r"|\([A-Za-z_ -]{0,40}\)|[\w-]{0,20}(?:\.{3}|…)\Z"
    r"|(?:op|vault|ref|ref\+\w{1,20}|secret|secretref|keyring|ssm|sops|awssm|gcpsm|azurekv|bws"
    r"|env|file|fd|doppler|infisical|keychain|pass|chamber)://|//"
    r"|(?:file|env|fd|keyring|cmd|pinentry|interactive|vault|ssm):|!vault|ENC\[|arn:aws"
    r"|@(?:-\Z|keychain:|env:|[\w~-]{0,60}[./][\w./~-]{0,200}\Z)"
    r"|\W{0,3}\Z|([*xX.\-_#•●·?0])\1{2,}\W{0,3}\Z|\w{0,6}\*{3,}\w{0,6}\Z"
    r"|[\w-]{0,20}?([xX])\2{5,}\W{0,3}\Z"
)
"""A pointer to where a value is kept, or a mask over it."""

_EXPRESSION = lazy_pattern(r"\.[*+]|\\[wdbsWDS]|\(\?|\[\^|\[[aA0]-[zZ9]|\{[0-9]{1,4},[0-9]{0,4}\}")
"""What regular expressions hold: one that begins with it, or holds it twice, is one."""

_EXAMPLE = words("""
    apikey auth censored changeit changeme code cookie credential credentials example filtered
    fixme hash here hidden jwt key keys masked mypassword mysecret mytoken otp pass passcode
    passphrase passwd password passwords pat pin placeholder pswd pw pwd redacted removed replace
    replaceme secret secrets string text todo token tokens value xxx yourpassword yours yoursecret
    yourtoken
""")
_FILLER = words("""
    a access account admin an and any api app application aws azure base bearer change client
    consumer current database db default docker dummy encoded encrypted fake file for from gcp
    generated github gitlab goes google hex host id in insert is it lm me my name new npm nt of
    old one openai or our own paste personal private public put random real refresh root sample
    server service session some storage strong super the this to try type url use user username
    very with word your
""")
_NOTHING = words("""
    accepted always any array auto basic bearer bool boolean bytes can cannot default denied dict
    digest disabled empty enabled enum env expired failed false file float has incorrect inherit
    int integer invalid is list missing must n negotiate never nil no none not ntlm null number
    oauth oauth2 object off oidc ok on optional prompt rejected required self should stdin stdout
    str string this true type undefined unknown unset uuid valid void was wrong y yes
""")

_LETTERS = lazy_pattern(r"[A-Za-z]{1,64}")
_PLAIN = lazy_pattern(r"[A-Za-z_ .:/\-]{1,80}\Z")
_FILE = lazy_pattern(
    r"[\w.~@+-]{1,128}\.(?:pem|key|pub|crt|cer|der|p12|pfx|jks|json|ya?ml|toml|ini|conf|cfg|txt"
    r"|env|gpg|asc|age|kdbx|keytab|py|js|ts|go|rb|rs|sh|php|java|html?|md|csv|log|lst|dic|enc)\Z"
)
_ROOTED = lazy_pattern(
    r"\.{0,2}/(?:[a-z][a-z0-9_.-]{1,20}|Users|Volumes|Library)?(?:/|\Z)|~\w{0,32}/|[A-Z]:[/\\]"
)
_PATH = lazy_pattern(r"(?:[A-Za-z]:)?[\w.@~+%{}$-]{0,128}(?:[/\\][\w.@~+%{}$ -]{0,128}){1,32}\Z")
_CODE = lazy_pattern(
    r"(?:os|process|import|env|self|this|config|cfg|settings|secrets|vars?|local|data|module|args"
    r"|opts?|options|params|props|ctx|context|req|request|res|response|event|state|user|app|cls"
    r"|credentials|creds|auth|each|inputs|steps|matrix|github|values)[?!]?"
    r"(?:\.[A-Za-z_][\w?!]{0,64}|\[){1,8}"
)

_ATTRIBUTE = lazy_pattern(r"[A-Za-z_]\w{0,40}(?:\.[A-Za-z_]\w{0,40}){1,5}\Z")


_LOOK_MAX = 256
"""So much of a value is looked at."""


def is_harmless(value: str, kind: str) -> bool:
    """Tell whether what stands under a secret's name is none: a reference, an example, a type."""
    bare = value[:_LOOK_MAX].strip("'\", \t").rstrip("\\")
    if not bare or MARK in bare or _REFERENCE.match(bare):
        return True
    if _EXPRESSION.match(bare) or len(_EXPRESSION.findall(bare)) > 1:
        return True
    if kind == "pass":
        return is_example(bare)
    counts = bare.isdigit() and len(bare) <= 6  # a position, a year
    return counts or is_example(bare) or is_path(bare)


def is_variable(value: str) -> bool:
    """Tell whether what begins with a dollar is a variable's name, even where none is expanded."""
    return not value.startswith("$") or _VARIABLE.match(value) is not None


_VARIABLE = lazy_pattern(r"\$(?:[A-Z_][A-Z0-9_]{0,80}\Z|[a-z_]{1,80}\Z|[^A-Za-z_])")


_PAIR = lazy_pattern(r"(?P<user>[\w.@+\\-]{1,80}):(?P<secret>[^\s/:]{4,200})\Z")


def login_offset(value: str) -> int | None:
    """Return where the password of ``user:password`` begins; None where the value is no such."""
    pair = _PAIR.match(value)
    if pair is None or pair["secret"].isdigit() or pair["user"] == pair["secret"]:
        return None
    if not any(map(str.isdigit, pair["secret"])) or is_harmless(pair["secret"], "pass"):
        return None
    return pair.start("secret")


@functools.lru_cache(maxsize=1024)
def is_example(value: str) -> bool:
    """Tell whether a value only says what belongs there: ``YOUR_TOKEN``, ``password``, ``null``."""
    if not _PLAIN.match(value):
        return False
    if value.lower() in _NOTHING:
        return True
    parts = [part.lower() for part in _LETTERS.findall(value)]
    return not _EXAMPLE.isdisjoint(parts) and all(p in _EXAMPLE or p in _FILLER for p in parts)


def is_path(value: str) -> bool:
    """Tell whether a value names a file rather than being a secret, as base64 with slashes is."""
    value = value[:_LOOK_MAX]
    if _FILE.match(value):
        return True
    if not _PATH.match(value):
        return False
    return _ROOTED.match(value) is not None or len(_TURNS.findall(value)) * 6 < len(value)


def is_code(value: str) -> bool:
    """Tell whether a value is an expression of a program: ``process.env.X``, ``reply.token``."""
    if _CODE.match(value):
        return True
    return _ATTRIBUTE.match(value) is not None and classify_name(value) is not None


_WORDY = lazy_pattern(
    r"(?:v?[0-9]{1,8}(?:[.\-_:/][0-9]{1,8}){0,8}"  # a version, a date, an address
    r"|[0-9]{0,4}[A-Za-z]?[a-z]{0,64}[0-9]{0,4}"  # hunter42, Node18, 2fa
    r"|[A-Za-z0-9]{1,12}(?:[-_.:/,+][0-9]{0,2}[A-Za-z]{0,24}[0-9]{0,3}){1,16}"
    r"|(?:[0-9a-fA-F]{2}:){3,63}[0-9a-fA-F]{2}"  # a fingerprint, a hardware address
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r")\Z"
)
_NO_TOKEN = lazy_pattern(r"[\s\"'`(){}<>]")
_TURNS = lazy_pattern(r"[0-9](?=[^0-9])|[^0-9](?=[0-9])|[a-z](?=[A-Z])")


def looks_random(value: str) -> bool:
    """Tell whether a value looks drawn rather than written: no word, version, date or UUID."""
    value = value[:_LOOK_MAX]
    if len(value) < 8 or value.isdigit() or _WORDY.match(value) or _NO_TOKEN.search(value):
        return False
    turns = len(_TURNS.findall(value))
    if any(map(str.isdigit, value)):
        return turns >= 3
    return len(value) >= 20 and value.isalnum() and turns * 5 >= len(value)
