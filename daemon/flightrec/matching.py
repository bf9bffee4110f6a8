"""Patterns and command lines: does a rule apply to a line, and how is the line written then.

Both the writer (what does this run say about known rules?) and the hints (what is to be typed?) ask
here. Everything is linear in the line's length and looks at no file but through a directory's name.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from flightrec.rules import Pattern, Remedy, Slot, Takes, Trigger
from flightrec.shell_words import (
    CommandLine,
    SimpleCommand,
    Word,
    parse,
    quote,
    replace_segment,
)

SEGMENTS_MAX = 32
WORDS_MAX = 48
"""Parts of a line, and words of a part, that rules are looked up for."""


class Bound(NamedTuple):
    """Which of a segment's words a slot stands for; ``skip`` characters of a VALUE are prefix."""

    start: int
    stop: int
    skip: int = 0


def match(pattern: Pattern, words: Sequence[str]) -> dict[int, Bound] | None:
    """Return what the slots stand for in these words, or None where they do not fit.

    A slot of any length ends at the first word that the pattern goes on with, so that matching is
    linear.
    """
    bound: dict[int, Bound] = {}
    at = 0
    for index, part in enumerate(pattern):
        stop = _end_of(part, pattern[index + 1 : index + 2], words, at)
        if stop is None:
            return None
        if isinstance(part, Slot):
            bound[part.number] = Bound(at, stop, len(part.prefix))
        at = stop
    return bound if at == len(words) else None


def _end_of(part: str | Slot, following: Pattern, words: Sequence[str], at: int) -> int | None:
    """Return the index behind the words that ``part`` takes from ``at`` on."""
    if isinstance(part, str):
        return at + 1 if at < len(words) and words[at] == part else None
    if part.takes is Takes.WORD:
        return at + 1 if at < len(words) else None
    if part.takes is Takes.VALUE:
        return at + 1 if at < len(words) and words[at].startswith(part.prefix) else None
    stop = _next_fixed(following, words, at)
    if stop is None or (part.takes is Takes.OPTIONS and not _only_options(words[at:stop])):
        return None
    return stop


def _next_fixed(following: Pattern, words: Sequence[str], at: int) -> int | None:
    if not following:
        return len(words)
    part = following[0]
    if isinstance(part, Slot) and not part.prefix:
        return at
    for index in range(at, len(words)):
        if words[index] == part or (
            isinstance(part, Slot) and words[index].startswith(part.prefix)
        ):
            return index
    return None


def _only_options(words: Sequence[str]) -> bool:
    """Whether these are options; a word right behind one without ``=`` may be its value."""
    value_may_follow = False
    for word in words:
        if not word.startswith("-") and not value_may_follow:
            return False
        value_may_follow = word.startswith("-") and "=" not in word
    return True


def fill(pattern: Pattern, bound: dict[int, Bound], words: Sequence[Word], text: str) -> str:
    """Return a remedy's words with those of the command at hand in the slots, as typed there."""
    filled: list[str] = []
    for part in pattern:
        if isinstance(part, str):
            filled.append(part)
            continue
        start, stop, skip = bound[part.number]
        filled += (
            part.prefix + _value(text[word.start : word.end], word, skip)
            for word in words[start:stop]
        )
    return " ".join(filled)


def _value(source: str, word: Word, skip: int) -> str:
    """Return a word as typed, less its first ``skip`` characters (an option's name and ``=``)."""
    if not skip or source[:skip] == word.text[:skip]:
        return source[skip:]
    return quote(word.text[skip:])


def segment_values(segment: SimpleCommand) -> list[str]:
    """Return the segment's words as the program sees them, wrappers left out."""
    return [word.text for word in segment.core]


def directory_of(line: CommandLine, index: int, cwd: str) -> str | None:
    """Return the real directory in which a segment runs, or None where nobody can tell.

    Only what the line itself does is followed: ``cd sub && make`` runs ``make`` in ``cwd/sub``.
    """
    folder = cwd
    for segment in line.segments[:index]:
        if segment.program not in ("cd", "pushd", "popd") or segment.depth:
            continue
        arguments = [word for word in segment.arguments if word.text != "--"]
        if segment.program == "popd" or len(arguments) != 1 or not arguments[0].literal:
            return None
        if arguments[0].text in ("-", ""):
            return None
        folder = os.path.join(folder, arguments[0].text)
    return os.path.realpath(folder)


@dataclass(frozen=True, slots=True)
class Location:
    """Where a command line is typed. ``worktree`` is a real path, ``cwd`` as the shell has it."""

    cwd: str
    worktree: str


@dataclass(frozen=True, slots=True)
class Found:
    """A segment that a trigger is about."""

    segment: int
    bound: dict[int, Bound]


def find_trigger(
    trigger: Trigger, remedy: Remedy, line: CommandLine, location: Location
) -> Found | None:
    """Return the first segment that the rule is about and that is not mended already."""
    for index, segment in enumerate(line.segments[:SEGMENTS_MAX]):
        bound = match(trigger.words, segment_values(segment))
        if (
            bound is not None
            and not _has_prefix(segment, remedy.prefix)
            and not _is_prepared(line, segment, remedy.before)
            and _runs_in(trigger.directory, line, index, location)
        ):
            return Found(index, bound)
    return None


def find_remedy(
    trigger: Trigger, remedy: Remedy, line: CommandLine, location: Location
) -> int | None:
    """Return the index of the segment that does what the remedy says, or None.

    What it says to run first may have run earlier (see ``prepares``): here it must stand in this
    line only where nothing else tells the remedy from the trigger.
    """
    pattern = remedy_pattern(remedy) or trigger.words
    in_line = bool(remedy.before) and not (remedy.words or remedy.prefix or remedy.directory)
    for index, segment in enumerate(line.segments[:SEGMENTS_MAX]):
        if (
            match(pattern, segment_values(segment)) is not None
            and (not remedy.prefix or _has_prefix(segment, remedy.prefix))
            and (not in_line or _is_prepared(line, segment, remedy.before))
            and _runs_in(remedy.directory, line, index, location)
        ):
            return index
    return None


def prepares(remedy: Remedy, line: CommandLine) -> bool:
    """Whether this line runs something of what the remedy wants to run first."""
    return any(step == line.text.strip() or _has_step(line, step) for step in remedy.before)


def _has_step(line: CommandLine, step: str) -> bool:
    return any(line.text[s.start : s.end] == step for s in line.segments[:SEGMENTS_MAX])


def _has_prefix(segment: SimpleCommand, prefix: Sequence[str]) -> bool:
    """Whether the segment has the variables or the wrapper that the remedy would put before it."""
    if not prefix:
        return False
    names = {word.text.partition("=")[0] for word in segment.assignments}
    wrappers = {word.text for word in segment.words[: segment.wrappers]}
    return all(
        word.partition("=")[0] in names if is_assignment(word) else word in wrappers
        for word in prefix
    )


def _is_prepared(line: CommandLine, segment: SimpleCommand, before: Sequence[str]) -> bool:
    earlier = line.text[: segment.start]
    return bool(before) and all(step in earlier for step in before)


def _runs_in(directory: str | None, line: CommandLine, index: int, location: Location) -> bool:
    if directory is None:
        return True
    found = directory_of(line, index, location.cwd)
    return found is not None and found == os.path.normpath(
        os.path.join(location.worktree, directory)
    )


@lru_cache(maxsize=4096)
def remedy_pattern(remedy: Remedy) -> Pattern:
    """Return the remedy's words as the program would see them; empty where they stay the same."""
    return tuple(word_value(part) if isinstance(part, str) else part for part in remedy.words)


def word_value(source: str) -> str:
    """Return the value of one word as typed."""
    segments = parse(source).segments
    return segments[0].words[0].text if segments and segments[0].words else source


def is_assignment(word: str) -> bool:
    """Whether this word typed before a command sets a variable for it."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The command at hand as the remedy wants it: the whole line, and the segment alone."""

    line: str | None
    segment: str


def rewrite(
    remedy: Remedy, line: CommandLine, found: Found, location: Location
) -> Rewritten | None:
    """Return what to type instead, or None where it cannot be said (an unknown directory).

    ``line`` is None where the segment stands so that putting something before it would change what
    the rest of the line means.
    """
    segment = line.segments[found.segment]
    core = line.core_text(found.segment)
    if remedy.words:
        core = fill(remedy.words, found.bound, segment.core, line.text)
    wrappers = [word for word in remedy.prefix if not is_assignment(word)]
    core = " ".join([*wrappers, core])
    lead = _lead(remedy, line, found.segment, location)
    if lead is None:
        return None
    variables = "".join(f"{word} " for word in remedy.prefix if is_assignment(word))
    whole = replace_segment(line, found.segment, core)
    if lead or variables:
        whole = f"{whole[: segment.start]}{lead}{variables}{whole[segment.start :]}"
    simple = not lead or found.segment <= line.leading
    return Rewritten(whole if simple else None, f"{lead}{variables}{core}")


def _lead(remedy: Remedy, line: CommandLine, index: int, location: Location) -> str | None:
    """Return what is to be typed before the segment, each step followed by ``&&``."""
    steps = list(remedy.before)
    if remedy.directory is not None:
        here = directory_of(line, index, location.cwd)
        if here is None:
            return None
        there = os.path.normpath(os.path.join(location.worktree, remedy.directory))
        if here != there:
            steps.append(f"cd {quote(_shortest(here, there))}")
    return chained(steps)


def chained(steps: Sequence[str]) -> str:
    """Return what is typed before a command to run these steps first.

    What is left running in the background (``&``) is not waited for.
    """
    return "".join(f"{step} " if step.endswith("&") else f"{step} && " for step in steps)


def _shortest(here: str, there: str) -> str:
    relative = os.path.relpath(there, here)
    return relative if len(relative) <= len(there) else there


def anchor_of(pattern: Pattern) -> str:
    """Return the text under which a pattern is found: its most telling fixed word.

    Every line that can match has this among its ``probes``.
    """
    fixed = [part if isinstance(part, str) else part.prefix for part in pattern]
    if all(isinstance(part, str) for part in pattern):
        return "=" + "\0".join(fixed)
    telling = [word for word in fixed[1:] if word]
    return f"{fixed[0]}\0{telling[-1]}" if telling else fixed[0]


def probes(words: Sequence[str]) -> list[str]:
    """Return all texts under which a pattern that matches these words may be found."""
    if not words:
        return []
    program = words[0]
    found = [program, "=" + "\0".join(words)]
    for word in words[1:WORDS_MAX]:
        found.append(f"{program}\0{word}")
        if word.startswith("-") and "=" in word:
            found.append(f"{program}\0{word[: word.index('=') + 1]}")
    return found


def is_opposite(one: Trigger, remedy: Remedy, other: Trigger, other_remedy: Remedy) -> bool:
    """Whether one rule replaces exactly what the other one offers, and the other way round."""
    return bool(
        remedy.words
        and remedy_pattern(remedy) == other.words
        and remedy_pattern(other_remedy) == one.words
    )
