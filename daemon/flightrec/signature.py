"""An error's text made comparable: the same mistake gives the same signature, whatever the path,
the number, the version, the colours or the quotes of the day.
"""  # noqa: D205 - the first sentence needs two lines

# ruff: noqa: RUF001 - quotes of all kinds are the point

import re
from collections.abc import Iterable

MESSAGE_MAX = 160
"""Code points of a message that count."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?|[@-_])")
_LEFT_OVER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_QUOTES = re.compile("[«‹„“”‘’‚′´`\N{FULLWIDTH APOSTROPHE}]|(?<=\\w)[»›]|[»›]")
_FRENCH_BLANKS = re.compile("(?<=«)[\\s\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}]|"
                            "[\\s\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}](?=»)")  # fmt: skip

_BLANKED = (
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"]+"), "<url>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"(?<![\w.-])(?:~|\.{1,2})?/[\w.@+~%=:,-]+(?:/[\w.@+~%=:,-]*)*"), "<path>"),
    (re.compile(r"(?<![\w<-])[\w.@+~-]+(?:/[\w.@+~-]+)+/?"), "<path>"),
    (re.compile(r"(?<![\w<-])[\w@+~-]+\.[a-z][a-z0-9]{0,5}\b(?![(.])"), "<path>"),
    (re.compile(r"\bv?\d+(?:\.\d+)+(?:[-+.]?[a-z0-9]+)*\b"), "<version>"),
    (re.compile(r"\b0x[0-9a-f]+\b"), "<hex>"),
    (re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7,64}\b"), "<hex>"),
    (re.compile(r"\d+"), "<n>"),
    (re.compile(r"[\s'\"]+"), " "),
)


def plain(text: str) -> str:
    """Return output as a person sees it: no colours, no overwritten progress, one kind of quote."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    if not text.replace("\n", "").replace("\t", "").isprintable():
        text = _LEFT_OVER.sub("", text)
    if "`" in text or not text.isascii():
        text = _QUOTES.sub("'", _FRENCH_BLANKS.sub("", text)).replace("\N{NO-BREAK SPACE}", " ")
    return text


def normalise(message: str) -> str:
    """Return one line of a message with everything blanked that differs from run to run."""
    message = message[: 4 * MESSAGE_MAX].lower()
    for pattern, blank in _BLANKED:
        message = pattern.sub(blank, message)
    return message.strip()[:MESSAGE_MAX]


def make_signature(kind: str, program: str, subcommand: str, parts: Iterable[str]) -> str:
    """Return what two failures have in common exactly when they are the same mistake."""
    message = normalise(" ".join(parts))
    return f"{kind}|{program}|{subcommand}|{message}"
