"""When one word is a misspelling of another, and when just another word."""

import re

from rapidfuzz.distance import OSA

from flightrec.invocation import base_name

_SEPARATORS = re.compile(r"[-_.+/\s]+")
_DIGITS = re.compile(r"\d+")


def is_typo(wrong: str, right: str) -> bool:
    """Whether ``right`` is what somebody meant who typed ``wrong``.

    A difference in digits alone is another target (``v1`` and ``v2``), and in short words a letter
    that was exchanged makes another word more often than a slip (``cat`` and ``cut``).
    """
    if wrong == right or not wrong or not right:
        return False
    wrong, right = wrong.lower(), right.lower()
    if _DIGITS.sub("", wrong) == _DIGITS.sub("", right) and _DIGITS.search(wrong + right):
        return False
    if _SEPARATORS.sub("", wrong) == _SEPARATORS.sub("", right):
        return True
    if _differs_in_a_part(wrong, right):
        return False
    longest = max(len(wrong), len(right))
    allowed = 1 if longest <= 5 else 2 if longest <= 11 else 3
    distance = OSA.distance(wrong, right, score_cutoff=allowed)
    if distance > allowed:
        return longest <= 8 and len(wrong) > 2 and sorted(wrong) == sorted(right)
    return distance > 0 and not _exchanged(wrong, right, distance)


def _differs_in_a_part(wrong: str, right: str) -> bool:
    """Whether one part of a name is another one, not a misspelled one (``x-a``, ``x-b``)."""
    wrong_words, right_words = (_words(name) for name in (wrong, right))
    if len(wrong_words) != len(right_words) or len(wrong_words) < 2:
        return False
    pairs = [(w, r) for w, r in zip(wrong_words, right_words, strict=True) if w != r]
    return len(pairs) == 1 and not _is_slip(*pairs[0])


def _exchanged(wrong: str, right: str, distance: int) -> bool:
    """Whether only letters were exchanged for others, in a word too short for that."""
    if len(wrong) != len(right) or sorted(wrong) == sorted(right):
        return False
    return len(wrong) < 5 * distance


def is_near(wrong: str, right: str) -> bool:
    """Whether two words are near enough, where the error has said already which one is wrong."""
    longest = max(len(wrong), len(right))
    allowed = 1 if longest <= 5 else 2
    return longest > 2 and OSA.distance(wrong.lower(), right.lower()) <= allowed


def is_one_key_off(wrong: str, right: str) -> bool:
    """Whether they are near, and plain words, so that nothing in them counts things."""
    return wrong.isalpha() and right.isalpha() and is_near(wrong, right)


def is_like(wrong: str, right: str) -> bool:
    """Whether ``right`` is a misspelling or a longer or shorter form of ``wrong``."""
    if is_typo(wrong, right):
        return True
    short, long = sorted((wrong.lower().strip("-"), right.lower().strip("-")), key=len)
    if short == long:
        return bool(short) and wrong != right
    if len(short) < 3:
        return False
    if _DIGITS.sub("", short) == _DIGITS.sub("", long):
        return False
    if 2 * len(short) < len(long) and short not in _SEPARATORS.split(long):
        return False
    return long.startswith(short) or long.endswith(short)


def is_path_typo(wrong: str, right: str) -> bool:
    """Whether a path is a slip of another: one part misspelled, the others the same."""
    if base_name(wrong) == base_name(right) == "":
        wrong, right = wrong.rstrip("/"), right.rstrip("/")
    wrong_parts, right_parts = wrong.split("/"), right.split("/")
    if len(wrong_parts) != len(right_parts):
        return False
    pairs = [(w, r) for w, r in zip(wrong_parts, right_parts, strict=True) if w != r]
    if len(pairs) != 1:
        return False
    wrong_part, right_part = pairs[0]
    return _is_name_typo(wrong_part, right_part)


def _is_name_typo(wrong: str, right: str) -> bool:
    """Whether a file's name is a slip; a whole word that differs in it is another file."""
    wrong_words, right_words = (_words(name) for name in (wrong, right))
    if wrong_words == right_words:
        return True  # only what stands between the words differs: a dot, a dash
    if len(wrong_words) == len(right_words):
        pairs = [(w, r) for w, r in zip(wrong_words, right_words, strict=True) if w != r]
        return len(pairs) == 1 and _is_slip(*pairs[0])
    return is_typo(wrong, right) and abs(len(wrong) - len(right)) <= 2


def _is_slip(wrong: str, right: str) -> bool:
    """Whether letters were left out, doubled or in the wrong order."""
    if wrong.isdigit() or right.isdigit():
        return False
    if wrong.lower() == right.lower():
        return True
    if len(wrong) == len(right) and sorted(wrong) != sorted(right) and len(wrong) < 5:
        return False
    return is_typo(wrong, right)


def _words(name: str) -> list[str]:
    return re.findall(r"[A-Za-z]+|\d+", name)
