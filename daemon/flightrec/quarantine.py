"""Commands that are more than commands once a model reads them: what is kept out of memory files.

The text of a rule comes from a shell, so it may come from anybody who can make a shell run
something. Two tables: what cannot be written down harmlessly, and what waits for a person to look.
A command that is kept out needlessly costs one ``flightrec rules approve``.
"""

import re
from collections.abc import Callable, Iterator

from flightrec.harmless import is_harmless
from flightrec.redact import PLACEHOLDER
from flightrec.shell_words import parse

COMMAND_MAX = 120
"""Characters; a command cut off would be a wrong one, so a longer one stays out."""

Test = Callable[[str], object]


def why_never(text: str) -> str:
    """Return why no approval makes this text harmless; empty where it is."""
    return next((reason for reason, is_so in NEVER if is_so(text)), "")


def why_suspicious(text: str) -> str:
    """Return why a person should look at this text first; empty where nobody needs to."""
    return next((reason for reason, is_so in UNTIL_APPROVED if is_so(text)), "")


def why_no_name(path: str) -> str:
    """Return why a folder's path is not to be shown to a model as a name; empty where it may be.

    Whoever publishes a repository has a say in it, and there is nobody to approve a name.
    """
    return next((reason for reason, is_so in NOT_A_NAME if is_so(path)), "")


def _is_no_command(text: str) -> bool:
    line = parse(text)
    return not (line.complete and line.segments) or line.has_comment or line.has_heredoc


_COMMENT = re.compile(r"<!|-->|<\?")

_IMPORT = re.compile(r"(?<![\w.])@(?:[~/.$\\{]|[\w./-]*\.\w+(?![\w/]))")
"""``@~/.ssh/id_rsa`` and ``@notes.md``, but not ``npm install @types/node``."""

NEVER: tuple[tuple[str, Test], ...] = (
    ("holds characters that cannot be seen", lambda text: not is_harmless(text)),
    (f"is longer than {COMMAND_MAX} characters", lambda text: len(text) > COMMAND_MAX),
    ("holds the place of a secret", PLACEHOLDER.search),
    ("could be read as a comment", _COMMENT.search),
    ("could be read as an import of a file", _IMPORT.search),
    ("is not one whole command", _is_no_command),
)

# --- until approved --------------------------------------------------------------------------

_ADDRESS = re.compile(
    r"(?i)\w+://|\bwww\.|\b[\w.+-]+@[\w.-]+\.[a-z]{2,}\b|\bdata:|\b\d+(?:\.\d+){3}\b"
)

_FEEDS_A_SHELL = re.compile(
    r"\|\s*(?:sudo\s+)?(?:\S*/)?(?:ba|z|da|k)?sh\b|\beval\b|\b(?:source|\.)\s+<\(|`|\$\("
)

_ENCODED = re.compile(
    r"""(?x)
      (?<![A-Za-z0-9])(?=\S*[a-z])(?=\S*[A-Z])(?=\S*[0-9])[A-Za-z0-9+_-]{20,}={0,2}
    | [0-9a-fA-F]{32,}
    | [A-Za-z0-9+/]{40,}=?
    | (?:\\x[0-9a-fA-F]{2}){3,}
    | (?:\\[0-7]{3}){3,}
    | (?:%[0-9a-fA-F]{2}){3,}
    """
)

_ADDRESSED = "you|we|agents?|models?|assistants?|claude|codex|gemini|copilot|gpt|llms?|ai"
_URGED = "must|should|shall|need|have|are|will|always|never|please|now"
_ASKED = (
    "run|use|execute|call|read|send|post|add|write|delete|remove|install|open|follow|tell|reveal"
    "|mention|ask|trust|commit|push|upload|download|fetch|approve|disable|enable|skip|do|be"
)
_MEANT = "previous|prior|earlier|above|preceding|instructions?|guidelines?|safety|prompts?|rules"
_HIDDEN = "secrets?|tokens?|passwords?|credentials?|contents?|history"

_INSTRUCTION = re.compile(
    "|".join(
        rf"\b(?:{phrase})\b"
        for phrase in (
            rf"(?:ignore|disregard|forget|override|bypass)(?: \w+){{0,4}} (?:{_MEANT})",
            r"(?:system|developer|initial|hidden|new|updated) (?:prompt|message|instructions?)",
            rf"(?:{_ADDRESSED}) (?:{_URGED})",
            rf"(?:must|always|never|please|do not|don t|instead|then) (?:{_ASKED})",
            rf"(?:important|attention|urgent|warning|notice|reminder) (?:{_ASKED}|to|for|you|the)",
            r"(?:before|after|when|while|if)(?: \w+){0,3} (?:you|answering|responding|continuing)",
            r"(?:act|behave|respond|pretend|roleplay) (?:as|like)",
            r"(?:from|starting) now on|as an ai|instructions?(?: \w+)? (?:below|follow|are|is)",
            rf"(?:send|post|upload|leak|reveal|exfiltrate)(?: \w+){{0,4}} (?:{_HIDDEN})",
            r"jailbreak|prompt injection|exfiltrate|human approved|user approved|approved by",
            r"(?:im start|im end|inst|end of|begin) (?:system|user|assistant|instructions?|prompt)",
        )
    )
)
"""Ways to talk to a model, in the words that are left when all marks between them are blanks."""

_RUN_TOGETHER = re.compile(
    rf"(?:ignore|disregard|forget|override)(?:all|any|the|your|my|every|these)*(?:{_MEANT})"
)

_SPEAKER = re.compile(
    r"(?i)(?:^|[\s\"'(])(?:assistant|system|human|user)\s*:(?:\s|$)|<\||\[/?inst\]"
)


def _spoken(text: str) -> str:
    """Return the words of a text, as somebody would read it out: ``runThis_now`` is three."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return re.sub(r"[^a-z0-9]+", " ", apart.lower()).strip()


def _is_instruction(text: str) -> bool:
    spoken = _spoken(text)
    return bool(
        _INSTRUCTION.search(spoken)
        or _RUN_TOGETHER.search(spoken.replace(" ", ""))
        or _SPEAKER.search(text)
    )


PROSE_WORDS = 5
"""In one breath: no option, file or branch has a need for as many."""

_BARE_WORDS = re.compile(r"(?:(?<=\s)|^)[A-Za-z]{2,}(?:\s+[A-Za-z]{2,}){6}(?=\s|$)")


def _is_prose(text: str) -> bool:
    return any(
        len(re.findall(r"[A-Za-z]{2,}", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", part))) >= PROSE_WORDS
        for part in _parts(text)
    ) or bool(_BARE_WORDS.search(text))


def _parts(text: str) -> Iterator[str]:
    """Yield what stands between slashes in each word: one name, or one quoted text."""
    for segment in parse(text).segments:
        words = (*segment.assignments, *segment.words)
        for word in (*words, *(redirection.target for redirection in segment.redirections)):
            yield from word.text.split("/")


UNTIL_APPROVED: tuple[tuple[str, Test], ...] = (
    ("holds letters outside ASCII", lambda text: not text.isascii()),
    ("holds an address", _ADDRESS.search),
    ("feeds a shell", _FEEDS_A_SHELL.search),
    ("holds something encoded", _ENCODED.search),
    ("reads like an instruction", _is_instruction),
    ("reads like prose", _is_prose),
)

# --- names of projects -----------------------------------------------------------------------

NAME_MAX = 200
"""Characters of a folder's path."""

NAME_WORDS = 8
"""In one folder's name: more than projects are called by."""


def _is_sentence(path: str) -> bool:
    return any(len(re.findall(r"[^\W\d_]{2,}", name)) >= NAME_WORDS for name in path.split("/"))


NOT_A_NAME: tuple[tuple[str, Test], ...] = (
    ("holds characters that cannot be seen", lambda text: not is_harmless(text)),
    (f"is longer than {NAME_MAX} characters", lambda text: len(text) > NAME_MAX),
    ("holds the place of a secret", PLACEHOLDER.search),
    ("could be read as a comment", _COMMENT.search),
    ("could be read as an import of a file", _IMPORT.search),
    ("could be read as a link", re.compile(r"\w+:/|\]\(").search),
    ("reads like an instruction", _is_instruction),
    ("reads like prose", _is_sentence),
)
