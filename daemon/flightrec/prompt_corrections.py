"""What a person tells an agent right after a failure → the command that he names, or nothing.

A prompt is the person's own, and nobody's business. Only a command that is set off in it as one
leaves this module; the rest is dropped where it came in.
"""

import re

import msgspec
from rapidfuzz.fuzz import ratio

from flightrec.shell_words import CommandLine, parse
from flightrec.shimmed_programs import shimmed_programs

PROMPT_MAX = 2_000
"""Characters; what is longer is a task, no correction."""

NAMED_MAX = 4
COMMAND_MAX = 200

ALIKE = 60
"""Percent of likeness from which on one line is another spelling of the other."""

_QUOTED = re.compile(r"(?<!`)`([^`\n]{2,200})`(?!`)")
_FENCED = re.compile(r"^```[a-z]{0,12}\n([^`]{2,200}?)\n?```", re.MULTILINE)
_CUE = re.compile(
    r"\b(?:use|instead|rather|should|try|run|meant|mean|not|wrong|must|correct|right|it's|its)\b",
    re.IGNORECASE,
)
_PROGRAM = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.+/-]{0,63}")
_CLIENTS_OWN = re.compile(r"<([a-z]+(?:[_-][a-z]+)+)>.*?</\1>", re.DOTALL)
"""What a client puts into the person's mouth: that something in the background has ended.

It is in the words of the model, which describes its commands.
"""

_PROMPT_SIGN = re.compile(r"\A(?:\$|>|%) ")

KNOWN = shimmed_programs()
"""Programs whose name at the beginning of a line makes that line a command, perhaps."""


class Spoken(msgspec.Struct, frozen=True, array_like=True):
    """The commands that a prompt names: those in backticks, and lines that look like one.

    ``corrects`` tells that it also has a word of correcting.
    """

    quoted: list[str]
    lines: list[str]
    corrects: bool


def read_prompt(prompt: str) -> Spoken | None:
    """Return the commands that a prompt names, None where it names none."""
    if not prompt or len(prompt) > PROMPT_MAX:
        return None
    prompt = _CLIENTS_OWN.sub("", prompt)
    quoted = [match[1].strip() for match in _QUOTED.finditer(prompt)]
    quoted += [match[1].strip() for match in _FENCED.finditer(prompt)]
    lines = [_PROMPT_SIGN.sub("", line.strip()) for line in prompt.splitlines()]
    found = [line for line in lines if len(line) <= COMMAND_MAX and _first(line) in KNOWN]
    if not quoted and not found:
        return None
    return Spoken(quoted[:NAMED_MAX], found[:NAMED_MAX], _CUE.search(prompt) is not None)


def correction_of(failed: str, spoken: Spoken) -> str | None:
    """Return what the person says to run instead of the ``failed`` segment.

    One command in backticks that is another one than the failed, with a word that corrects or of
    the same program; or a line that is the failed one in another spelling. None where that is
    not clear: several are named, or none that could be meant.
    """
    plain = " ".join(failed.split())
    quoted = {text for text in spoken.quoted if _is_command(text) and text != plain}
    if quoted:
        (first, *others) = quoted
        meant = spoken.corrects or _first(first) == _first(plain)
        return first if meant and not others else None
    alike = {line for line in spoken.lines if _is_command(line) and _is_spelling(plain, line)}
    return alike.pop() if len(alike) == 1 else None


def _is_spelling(failed: str, line: str) -> bool:
    return line != failed and ratio(failed, line) >= ALIKE


def _first(text: str) -> str:
    return text.split(maxsplit=1)[0] if text.strip() else ""


def _is_command(text: str) -> bool:
    """Whether this is one simple command: not a file's name, not a sentence."""
    line = parse(text)
    if not _is_whole(line) or _PROGRAM.fullmatch(_first(text)) is None:
        return False
    return len(line.segments[0].words) > 1 or _first(text) in KNOWN


def _is_whole(line: CommandLine) -> bool:
    return line.complete and not line.compound and len(line.segments) == 1
