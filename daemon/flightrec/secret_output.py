"""Programs whose output is itself a secret, with no mark by which it could be known.

What a terminal showed, or both streams in one, may then hold it, and no pattern finds it there.
"""

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from flightrec.command_line import CommandLine, SimpleCommand
from flightrec.secret_names import Trust, classify_name
from flightrec.shell_words import parse
from flightrec.wire import TailSource


class Teller(NamedTuple):
    """A row: programs, and the ``forms`` in which they tell, separated by commas.

    A form is a subcommand, an option, ``*`` for any argument, or ``!`` and arguments that are not.
    """

    programs: str
    forms: str


TELLERS = (
    Teller("op", "read, item get, document get, inject, signin"),
    Teller("pass gopass", "! ls list find search git init insert edit rm mv cp sync help version"),
    Teller("lpass", "show"),
    Teller("bw rbw", "get, list, generate, unlock, totp"),
    Teller("keepassxc-cli", "show, generate, export"),
    Teller("secret-tool", "lookup, search"),
    Teller("security", "find-generic-password, find-internet-password"),
    Teller("vault", "read, kv get, token create, print token, login, unwrap"),
    Teller("aws", "secretsmanager get-secret-value, ssm get-parameter, ssm get-parameters, "
           "ssm get-parameters-by-path, sts get-session-token, sts assume-role, configure get, "
           "ecr get-login-password, iam create-access-key, eks get-token"),
    Teller("gcloud", "secrets versions access, auth print-access-token, auth print-identity-token, "
           "auth application-default print-access-token"),
    Teller("az", "keyvault secret show, account get-access-token, ad sp create-for-rbac, "
           "storage account keys list, acr credential show"),
    Teller("kubectl oc", "get secret, get secrets, create token, config view, whoami"),
    Teller("heroku", "config, config:get, auth:token"),
    Teller("doppler", "secrets, configs tokens"),
    Teller("chamber", "read, export"),
    Teller("infisical", "secrets, export"),
    Teller("gh glab fly flyctl", "auth token"),
    Teller("terraform tofu", "output, show, state show"),
    Teller("pulumi", "config, stack output"),
    Teller("ansible-vault", "view, decrypt"),
    Teller("openssl", "rand, genrsa, genpkey, rsa, pkey, ec, pkcs12, passwd"),
    Teller("gpg gpg2", "-d, --decrypt, --export-secret-keys"),
    Teller("age rage sops", "-d, --decrypt, decrypt, exec-env"),
    Teller("age-keygen pwgen apg makepasswd mkpasswd xkcdpass diceware oathtool", "*"),
    Teller("htpasswd", "-n, -nb, -nB, -nbB"),
    Teller("wg", "genkey, genpsk, showconf, show"),
    Teller("ykman", "oath accounts code"),
    Teller("rails rake", "credentials:show, secret"),
)  # fmt: skip

PRINTERS = frozenset(("echo", "printf", "print"))
READERS = frozenset(
    """
    cat bat batcat head tail less more nl tac xxd od hexdump base64 base32 strings jq yq
    """.split()  # noqa: SIM905 - a table is easier to read so
)
_SECRET_FILES = (
    ".netrc", ".pgpass", ".git-credentials", ".vault-token", ".npmrc", ".pypirc", ".my.cnf", ".env",
    "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", "credentials", "credentials.json", "shadow",
    "token", "tokens", "password", "passwords", "passwd.txt", "secret", "secrets", "htpasswd",
    ".htpasswd", "master.key",
)  # fmt: skip
_SECRET_ENDS = (".pem", ".key", ".p12", ".pfx", ".kdbx", ".age", ".gpg", ".token", ".secret")

_MIXED = frozenset((TailSource.MERGED, TailSource.STDOUT, TailSource.PANE))
"""Tails that hold what a program printed, and not just what it complained of."""

_SUBSTITUTIONS_MAX = 8
_SUBSTITUTION_SIZE = 256
_WORDS_BEFORE = 3  # a subcommand may stand behind an option's value
_NAMES_MAX = 16
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w{2,64})")


def is_private_tail(line: CommandLine, source: TailSource, status: int | None) -> bool:
    """Whether a tail of this line may hold a secret that a program printed.

    One that failed all by itself has printed none: what it says teaches.
    """
    if source not in _MIXED:
        return False
    if len(line.segments) == 1 and status not in (0, None) and tells_secret(line.segments[0]):
        return False
    return any(map(tells_secret, line.segments)) or _substitutes_secret(line.text)


def tells_secret(command: SimpleCommand) -> bool:
    """Whether this command prints a secret where it works."""
    program = command.program.rpartition("/")[2]
    words = [word.text for word in command.arguments]
    if program in READERS:
        return any(map(_is_secret_file, words))
    if program == "printenv":
        return any(map(_is_secret_name, words))
    if program in PRINTERS:
        names = [name for word in words for name in _VARIABLE.findall(word)]
        return any(map(_is_secret_name, names[:_NAMES_MAX]))
    return any(_has_form(words, form) for form in _known_forms().get(program, ()))


@functools.cache
def _known_forms() -> dict[str, list[list[str]]]:
    """Return the forms of each program, in words."""
    forms: dict[str, list[list[str]]] = {}
    for teller in TELLERS:
        for program in teller.programs.split():
            forms.setdefault(program, []).extend(map(str.split, teller.forms.split(",")))
    return forms


def _has_form(words: Sequence[str], form: Sequence[str]) -> bool:
    if form[0] in ("*", "!"):
        return bool(words) and words[0] not in form[1:]
    if form[0].startswith("-"):
        return form[0] in words
    plain = [word.partition("/")[0] for word in words if not word.startswith("-")]
    return any(plain[at : at + len(form)] == form for at in range(_WORDS_BEFORE))


def _is_secret_file(word: str) -> bool:
    name = word.rpartition("/")[2].lower()
    return name in _SECRET_FILES or name.endswith(_SECRET_ENDS) or name.startswith(".env.")


def _is_secret_name(name: str) -> bool:
    if name in ("PWD", "OLDPWD"):
        return False
    named = classify_name(name)
    return named is not None and named.trust is Trust.SURE


def _substitutes_secret(text: str) -> bool:
    """Whether words of a command are made by a program that prints a secret."""
    for mark in ("$(", "`", "<("):
        for piece in text.split(mark, _SUBSTITUTIONS_MAX)[1:]:
            inner = parse(piece[:_SUBSTITUTION_SIZE])
            if inner.segments and tells_secret(inner.segments[0]):
                return True
    return False
