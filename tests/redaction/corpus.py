"""Our own corpus: templates filled with secrets that nobody ever used.

``positives.txt`` and ``negatives.txt`` hold one template a line. ``{pw}``, ``{hex40}`` and the like
are drawn from a seeded generator, so that no file of the repository holds anything that looks like
a token; ``⏎`` is a line break, and in a positive each secret stands between ``⟦`` and ``⟧``.
``vendors.txt`` holds the shape of each maker's tokens.
"""

import random
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent

_ALNUM = string.ascii_letters + string.digits
_ALPHABETS = {
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "alnum": _ALNUM,
    "alpha": string.ascii_letters,
    "lower": string.ascii_lowercase + string.digits,
    "UPPER": string.ascii_uppercase + string.digits,
    "digits": string.digits,
    "std": _ALNUM + "+/",  # base64
    "web": _ALNUM + "-_",
    "pem": _ALNUM + "+/",
    "otp": string.ascii_uppercase + "234567",  # base32
    "age": "023456789ACDEFGHJKLMNPQRSTUVWXYZ",
    "nix": "0123456789abcdfghijklmnpqrsvwxyz",
    "sym": _ALNUM + "!@%^&*(-_=+)",
}
_WORDS = ("Summer", "hunter", "dragon", "Winter", "Welcome", "acme", "Monday", "Qwerty", "Passw0rd")
_MNEMONIC = ("ripple", "canyon", "orbit", "velvet", "mimic", "saddle", "hover", "pluck", "tundra")
_SLOT = re.compile(r"\{([A-Za-z_]+)([0-9]*)\}")


class Sample(NamedTuple):
    """A text and the secrets in it."""

    text: str
    secrets: tuple[str, ...]


def positives(seed: int = 1) -> Iterator[Sample]:
    """Yield the texts that hold secrets, drawn with this seed."""
    for index, template in enumerate(_templates("positives.txt")):
        yield fill(template, random.Random(f"{seed}/{index}/{template}"))  # noqa: S311 - no secret is made here


def negatives(seed: int = 1) -> Iterator[str]:
    """Yield the texts that hold none, drawn with this seed."""
    for index, template in enumerate(_templates("negatives.txt")):
        yield fill(template, random.Random(f"{seed}/{index}/{template}")).text  # noqa: S311 - as above


def vendor_tokens(seed: int = 1) -> Iterator[tuple[str, Sample]]:
    """Yield a maker's name and one of its tokens."""
    for index, line in enumerate(_templates("vendors.txt")):
        name, shape = line.split(maxsplit=1)
        marked = shape if "⟦" in shape else f"⟦{shape}⟧"
        yield name, fill(marked, random.Random(f"{seed}/{index}"))  # noqa: S311 - as above


def fill(template: str, draw: random.Random) -> Sample:
    """Return the template with all slots filled, and what stood between the marks."""
    filled = _SLOT.sub(lambda match: _drawn(match, draw), template).replace("⏎", "\n")
    secrets = tuple(re.findall(r"⟦(.*?)⟧", filled, re.DOTALL))
    return Sample(filled.replace("⟦", "").replace("⟧", ""), secrets)


def leaked(secret: str, text: str) -> bool:
    """Tell whether eight characters in a row of a secret, or a shorter one, are in a text."""
    for line in secret.splitlines():
        width = min(8, len(line))
        if any(line[i : i + width] in text for i in range(len(line) - width + 1)):
            return True
    return False


def _templates(name: str) -> Iterator[str]:
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("# "):
            yield line


def _drawn(slot: re.Match[str], draw: random.Random) -> str:
    name, length = slot.groups()
    if not length and name in _SPECIAL:
        return _SPECIAL[name](draw)
    if not length or name not in _ALPHABETS:
        return slot[0]
    return _characters(_ALPHABETS[name], int(length), draw)


def _characters(alphabet: str, length: int, draw: random.Random) -> str:
    return "".join(draw.choice(alphabet) for _ in range(length))


def _password(draw: random.Random) -> str:
    """Return one that needs no quotes in a shell: drawn at random, or a word with digits."""
    kind = draw.randrange(4)
    if kind == 0:
        return draw.choice(_WORDS) + _characters(string.digits, 4, draw)
    if kind == 1:
        return "k" + _characters(string.ascii_lowercase, 9, draw) + _characters("23456789", 3, draw)
    return "r" + _characters(_ALNUM, draw.randrange(9, 19), draw) + draw.choice(string.digits)


def _symbols(symbols: str) -> Callable[[random.Random], str]:
    def password(draw: random.Random) -> str:
        head, tail = _characters(_ALNUM, 6, draw), _characters(_ALNUM, 5, draw)
        return f"q{head}{draw.choice(symbols)}{tail}{draw.choice(symbols)}7"

    return password


def _uuid(draw: random.Random) -> str:
    return "-".join(_characters(_ALPHABETS["hex"], n, draw) for n in (8, 4, 4, 4, 12))


def _phrase(draw: random.Random) -> str:
    return f"{' '.join(draw.sample(_MNEMONIC, 3))} {_characters(_ALNUM, 10, draw)}"


_SPECIAL: dict[str, Callable[[random.Random], str]] = {
    "pw": _password,
    "pws": _symbols("!#%@^*=+:,.?"),
    "pws_url": _symbols("!%*=+,._~-"),
    "pws_json": _symbols("!#%@^*=+:;,.?/$"),
    "pws_py": _symbols("!#%@^*=+:;,.?/"),
    "pws_conn": _symbols("!#%@^*+:,.?"),
    "pws_opt": _symbols("!%@^+:,.?"),
    "pws_out": _symbols("!#%^*+,;?/<"),
    "pws_at": _symbols("!#%^*"),
    "word": lambda draw: draw.choice(_WORDS) + _characters(string.digits, 3, draw),
    "phrase": _phrase,
    "mnemonic": lambda draw: " ".join(draw.choices(_MNEMONIC, k=12)),
    "uuid": _uuid,
    "ulid": lambda draw: "01" + _characters("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24, draw),
}
