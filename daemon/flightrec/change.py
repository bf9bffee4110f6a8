"""How a later command differs from the one that failed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from flightrec.invocation import Invocation

_QUIETNESS = frozenset(("-q", "-v", "-vv", "--quiet", "--verbose", "--silent", "-s", "--no-color"))


@dataclass(frozen=True, slots=True)
class Change:
    """Words taken out, words put in, words that stayed; options and their ``=values`` apart.

    ``moved`` tells that the same words stand in another order. ``joined`` are words put in that
    hold several of the words taken out (``fix bug`` → ``"fix bug"``).
    """

    removed: tuple[str, ...]
    added: tuple[str, ...]
    kept: tuple[str, ...]
    moved: bool
    joined: tuple[str, ...]

    @property
    def nothing(self) -> bool:
        """Whether the words are the same in the same order."""
        return not (self.removed or self.added or self.moved)

    @property
    def only_quietness(self) -> bool:
        """Whether the words differ at most in how much is to be printed."""
        return not self.moved and _QUIETNESS.issuperset((*self.removed, *self.added))


def compare(failed: Invocation, later: Invocation) -> Change:
    """Return how the words of ``later`` differ from those of ``failed``, programs set aside."""
    return compare_words(failed.words, later.words)


def compare_words(before: Sequence[str], after: Sequence[str]) -> Change:
    """Return the same for lists of words."""
    if before == after:
        return Change((), (), tuple(before), moved=False, joined=())
    before, after = _pieces(before), _pieces(after)
    removed = _without(before, after)
    added = _without(after, before)
    kept = _without(before, removed)
    moved = kept != _without(after, added)
    joined = tuple(word for word in added if _holds(word, removed))
    return Change(removed, added, kept, moved, joined)


def value_of(option: str, words: Sequence[str]) -> str:
    """Return the word behind an option, or what follows its ``=``; empty where there is none."""
    for index, word in enumerate(words):
        if word == option:
            return "".join(words[index + 1 : index + 2])
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return ""


def _pieces(words: Sequence[str]) -> tuple[str, ...]:
    pieces: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        pieces += [name, value] if equals and name.startswith("--") else [word]
    return tuple(pieces)


def _without(words: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return the words that are not in ``others``, each as often as it is left over."""
    left = Counter(others)
    rest = []
    for word in words:
        if left[word] > 0:
            left[word] -= 1
        else:
            rest.append(word)
    return tuple(rest)


def _holds(word: str, pieces: Sequence[str]) -> bool:
    """Whether a word is made of at least two of the pieces, in their order."""
    parts = word.strip("{}").split()
    return len(parts) > 1 and any(
        tuple(pieces[i : i + len(parts)]) == tuple(parts) for i in range(len(pieces))
    )
