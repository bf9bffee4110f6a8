"""Corrections within one command: the word, the option or the quoting that was wrong."""

import re
from collections.abc import Sequence

from rapidfuzz.fuzz import ratio

from flightrec.attempt import Attempt, meant_words
from flightrec.change import value_of
from flightrec.failure_kinds import K
from flightrec.invocation import INFORMATION_WORDS
from flightrec.likeness import is_like, is_near, is_one_key_off, is_typo
from flightrec.remedy_tables import SCRIPT_RUNNERS, SYNONYMS

ALIKE = 60
"""Percent of likeness above which one expression is a rewrite of the other."""

_SHELL_CHARACTERS = re.compile(r"[\[\]*?(){}!&;|<>$#~^]")


def word_corrected(attempt: Attempt) -> bool:
    """Whether the word that the error names became what was meant, the rest much the same."""
    change = attempt.change
    if not attempt.same_name:
        return False
    named = _typed_names(attempt) or attempt.failed.subcommand.split()[-1:]
    wrong = [w for w in change.removed if w in named]
    if not wrong:
        return _word_put_before(attempt, named)
    rest = [w for w in change.removed if w not in wrong]
    if len(rest) > max(1, len(change.kept)):
        return False
    return any(_is_meant(w, right, rest, attempt) for w in wrong for right in change.added)


def _typed_names(attempt: Attempt) -> list[str]:
    """Return the words of the failed command that the error names, as they were typed."""
    named = {name.strip(".-") for name in attempt.failure.named}
    return [word for word in attempt.failed.words if word.strip(".-") in named]


def _is_meant(wrong: str, right: str, rest: Sequence[str], attempt: Attempt) -> bool:
    """Whether a word is what was meant by the one that the error names."""
    asks = right in INFORMATION_WORDS and not is_typo(wrong, right)
    if asks or not _same_place(wrong, right, attempt):
        return False
    if is_typo(wrong, right) or (not rest and is_one_key_off(wrong, right)):
        return True
    meant = meant_words(attempt.output)
    if not rest and right not in meant and wrong in re.split(r"[-:/_.]", right):
        return True
    if meant:
        stays = wrong not in meant or wrong in attempt.later.words
        return right in meant and stays and _nothing_else_new(right, meant, attempt)
    if is_like(wrong, right) or _is_synonym(wrong, right, attempt):
        return True
    return not rest and not right.startswith("-") and is_near(wrong, right)


def _same_place(wrong: str, right: str, attempt: Attempt) -> bool:
    """Whether both words stand in the subcommand, at one place, or both outside it."""
    before, after = attempt.failed.subcommand.split(), attempt.later.subcommand.split()
    if wrong not in before:
        return right not in after or right in before
    if right not in after:
        return not after and right in INFORMATION_WORDS
    if len(after) == len(before) + 1 and after[0] in ("run", "run-script"):
        return True
    return before.index(wrong) == after.index(right)


def _nothing_else_new(right: str, meant: frozenset[str], attempt: Attempt) -> bool:
    """Whether a proposal was followed, and not another way gone that begins like it."""
    known = {*attempt.failed.words, *meant}
    return all(w in known or w.startswith("-") for w in attempt.change.added if w != right)


def _word_put_before(attempt: Attempt, named: Sequence[str]) -> bool:
    """Whether a word was missing before the named one, or stood behind it (``npm build``)."""
    change = attempt.change
    if change.removed or not named:
        return False
    if not change.added:
        return change.moved
    if attempt.failed.name in SCRIPT_RUNNERS and change.added in (("run",), ("run-script",)):
        return True
    return len(change.added) <= 2 and any(
        f"{word} {name}" in attempt.output for word in change.added for name in named
    )


def _is_synonym(wrong: str, right: str, attempt: Attempt) -> bool:
    if not any(wrong in group and right in group for group in SYNONYMS):
        return False
    if not attempt.failed.operands and not attempt.later.operands:
        return True
    return bool(attempt.kept_things) and attempt.keeps(but=(wrong,))


def slip_corrected(attempt: Attempt) -> bool:
    """Whether a slip was mended where the error shows its usage instead of naming the word."""
    change = attempt.change
    if not attempt.same_name or not change.removed or change.moved:
        return False
    slips = [w for w in change.removed if any(_is_clear_slip(w, a) for a in change.added)]
    if not slips or not (attempt.same_tool or set(slips) & set(attempt.failed.subcommand.split())):
        return False
    if attempt.failure.kind is K.OTHER:
        verbs = [w for w in attempt.failed.words if not w.startswith("-")][:1]
        verbs += attempt.failed.subcommand.split()
        plain_words = all(w in verbs and w.isalpha() for w in slips)
        return plain_words and len(change.removed) == len(change.added) == 1
    return len(change.removed) <= 2


def _is_clear_slip(wrong: str, right: str) -> bool:
    dashes = wrong.startswith("-") == right.startswith("-")
    bare, meant = wrong.strip("-"), right.strip("-")
    return len(bare) > 3 and is_typo(bare, meant) and (dashes or right in INFORMATION_WORDS)


def option_corrected(attempt: Attempt) -> bool:
    """Whether the option that the error names was replaced, moved or left out, and no more."""
    change = attempt.change
    if not _same_call(attempt):
        return False
    named = set(attempt.failure.named)
    wrong = [w for w in change.removed if _is_named_option(w, named)]
    if change.added == ("--",) and not change.removed:
        return True  # what looked like an option is none
    if not wrong:
        if any(_is_option_slip(w, a) for w in change.removed for a in change.added):
            return True
        return change.moved and not change.removed and bool(named & set(change.kept))
    rest = [w for w in change.removed if w not in wrong]
    if any(_is_option_slip(w, a) for w in wrong for a in change.added):
        return len(rest) <= max(1, len(change.kept))
    # Left out, or another option instead: only where the command is about the same things.
    return not [w for w in rest if not w.startswith("-")] and bool(attempt.kept_things)


def _is_named_option(word: str, named: set[str]) -> bool:
    if not word.startswith("-"):
        return False
    if word in named:
        return True
    # -xq: the error names the letter
    return not word.startswith("--") and any(
        len(n) == 2 and n.startswith("-") and n[1] in word[1:] for n in named
    )


def _is_option_slip(wrong: str, right: str) -> bool:
    if not (wrong.startswith("-") and right.startswith("-")):
        return False
    bare, meant = wrong.strip("-"), right.strip("-")
    if bare == meant or (wrong.startswith("--") and meant == bare[:1]):
        return True  # --vv and -vv, --verbose and -v
    return len(bare) > 2 and is_like(wrong, right)


def _same_call(attempt: Attempt) -> bool:
    """Whether both are one tool with one subcommand, or with a subcommand that was mended too."""
    if not attempt.same_name:
        return False
    before, after = attempt.failed.subcommand, attempt.later.subcommand
    if before == after or is_typo(before, after):
        return True
    return not after and any(is_typo(before, word.lstrip("-")) for word in attempt.change.added)


def called_differently(attempt: Attempt) -> bool:
    """Whether the tool, which rejected a call, was then called otherwise on the same things."""
    change, failed = attempt.change, attempt.failed
    if not attempt.same_name or attempt.later.asks_information or failed.asks_information:
        return False
    if failed.subcommand and not attempt.same_tool:
        return False
    if change.nothing:
        return attempt.failed_text != attempt.later_text
    return (
        bool(change.joined)
        or (change.moved and not change.removed and not change.added)
        or (bool(attempt.kept_things) and attempt.keeps())  # options differ, or more was given
        or (not change.removed and not failed.operands)  # an argument was missing
        or _twice_typed(attempt)
        or _one_rewritten(attempt)
    )


def _twice_typed(attempt: Attempt) -> bool:
    """Whether it was ``git clone git clone URL``."""
    words = {attempt.failed.program, *attempt.later.words}
    return not attempt.change.added and words.issuperset(attempt.change.removed)


def _one_rewritten(attempt: Attempt) -> bool:
    """Whether only words changed that the error names, or that are expressions much alike."""
    change = attempt.change
    if not change.added:
        return not set(change.removed) - set(attempt.failure.named)
    rest = [w for w in change.removed if not _is_rewritten(w, attempt)]
    others = [w for w in change.kept if w not in attempt.failed.subcommand.split()]
    return not rest and bool(others or len(attempt.failed.words) == 1)


def _is_rewritten(word: str, attempt: Attempt) -> bool:
    change = attempt.change
    if word in attempt.failure.named and len(change.removed) == len(change.added) == 1:
        # One of a tool's choices: as an argument it may be the very question.
        words = attempt.failed.words
        is_value = any(value_of(w, words) == word for w in words if w.startswith("-"))
        return is_value or attempt.failure.domain != "choice"
    if attempt.failure.kind is not K.EXPRESSION_SYNTAX and not word.startswith("-"):
        return False  # another file is another question
    return any(ratio(word, other) > ALIKE for other in change.added)


def requoted(attempt: Attempt) -> bool:
    """Whether it is the same text but for quotes, backslashes and blanks."""
    before, after = (_unquoted(t) for t in (attempt.failed_text, attempt.later_text))
    if "noglob" in attempt.later.wrappers and "noglob" not in attempt.failed.wrappers:
        return before == after
    if not before or attempt.failed_text == attempt.later_text:
        return False
    whole = (_unquoted(t) for t in (attempt.failure.line.text, attempt.later_line))
    if before == after or len(set(whole)) == 1 or before.replace(" ", "") == after.replace(" ", ""):
        return True
    if not attempt.same_name or "\n" in attempt.failed_text:
        return False
    # What the shell stumbled over was spelled otherwise: only words with its own characters differ.
    gone, came = set(before.split()) - set(after.split()), set(after.split()) - set(before.split())
    return bool(gone) and all(
        _SHELL_CHARACTERS.search(word) and any(_same_letters(word, other) for other in came)
        for word in gone
    )


def _unquoted(text: str) -> str:
    return " ".join(re.sub(r"[\\'\"]", "", text).split())


def _same_letters(one: str, other: str) -> bool:
    one, other = (re.sub(r"\W", "", word) for word in (one, other))
    return one == other or ratio(one, other) > ALIKE


def words_joined(attempt: Attempt) -> bool:
    """Whether several words became one: quotes had been forgotten."""
    return attempt.same_name and bool(attempt.change.joined)
