"""Which values are no secrets, whatever their name says, and which look like one.

A reference to where a secret is kept, a mask over it, an example, a path or code is none. What
looks drawn at random rather than written is one even where the name leaves that open.
"""

import functools

from flightrec.lazy_pattern import lazy_pattern
from flightrec.secret_names import classify_name, words

MARK = "‹"
"""Fills the place of placeholders while a text is searched: no secret holds one."""

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
