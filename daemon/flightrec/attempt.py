"""A failed command and a later one that passed, side by side."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from flightrec.change import Change
from flightrec.classify import Failure
from flightrec.invocation import Invocation, word_set

EVERYDAY_WORDS = word_set("the and for not with run use file a to of in is")

_MEANT = re.compile(
    r"(?i)(?:did you mean|most similar|similar commands?|similar choices?|similar names?"
    r"|maybe you meant|perhaps you|closest|meinten sie|vouliez-vous|quisiste decir|ähnlich"
    r"|ressemblant)"
)
_SYNOPSIS = re.compile(r"(?i)^\s*(?:usage\b|or:|-{1,2}[\w\[]|\[)|\[-{1,2}\w")


@dataclass(frozen=True, slots=True)
class Attempt:
    """What there is to judge whether ``later`` corrects ``failed``.

    ``output`` is what the failed one printed, plain, ``prose`` that without its list of options;
    ``same_chain`` tells that the lines around the two are the same but for these segments;
    ``failed_text`` and ``later_text`` are the two as written, ``later_line`` is the whole line.
    """

    failure: Failure
    failed: Invocation
    later: Invocation
    change: Change
    output: str
    prose: str
    same_chain: bool
    failed_text: str
    later_text: str
    later_line: str

    @property
    def same_name(self) -> bool:
        """Whether both run one tool."""
        return self.failed.name == self.later.name

    @property
    def same_tool(self) -> bool:
        """Whether both run one tool with one subcommand."""
        return self.same_name and self.failed.subcommand == self.later.subcommand

    def keeps(self, but: Collection[str] = ()) -> bool:
        """Whether what the failed command was about is still there, ``but`` some words of it."""
        theirs = set(self.later.words)
        return all(word in theirs or word in but for word in self.failed.operands)

    @property
    def kept_things(self) -> set[str]:
        """What both are about: operands of the one that are words of the other."""
        return set(self.failed.operands) & set(self.later.words)


def meant_words(output: str) -> frozenset[str]:
    """Return the words that an error proposes after a ``did you mean`` of its own."""
    match = _MEANT.search(output)
    if match is None:
        return frozenset()
    return frozenset(re.findall(r"[\w.:/@+-]{2,60}", output[match.end() : match.end() + 400]))


def prose(output: str) -> str:
    """Return an output without its list of options and synopsis: what proposes, not what lists."""
    return "\n".join(line for line in output.splitlines() if not _SYNOPSIS.search(line[:200]))


def stands_in(phrase: str, text: str) -> bool:
    """Whether a text holds a word or phrase on its own."""
    if len(phrase) < 2 or phrase.lower() in EVERYDAY_WORDS:
        return False
    position = text.find(phrase)
    while position >= 0:
        before, after = text[:position][-1:], text[position + len(phrase) :][:1]
        if not _joins(before) and not _joins(after):
            return True
        position = text.find(phrase, position + 1)
    return False


def _joins(character: str) -> bool:
    return character.isalnum() or character in ("-", "_")
