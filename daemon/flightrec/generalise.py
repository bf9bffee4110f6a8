"""From one recovery to the rule that follows: which words are fixed, which are slots, and where.

The failed and the mended segment are laid side by side. A word becomes a slot only where the kind
of failure does not depend on it; in doubt the trigger is the exact segment, in its own project.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rapidfuzz.distance import OSA

from flightrec.classify import Failure, FailureKind
from flightrec.harmless import is_harmless
from flightrec.ingest import CommandRun
from flightrec.invocation import PYTHON
from flightrec.matching import WORDS_MAX, directory_of, is_assignment
from flightrec.pairing import Recovery, RecoveryKind
from flightrec.programs import REPOSITORY_RUNNERS, Where, where_is
from flightrec.rules import Pattern, Remedy, Scope, Slot, Takes, Trigger
from flightrec.shell_words import CommandLine, SimpleCommand, parse, quote
from flightrec.wire import WordKind

SEGMENT_MAX = 200
"""Characters of a segment that becomes part of a rule: what does not fit into a hint is none."""

STEPS_MAX = 4
"""Runs that a remedy may ask for before the command."""

USER_KINDS = frozenset(
    (FailureKind.COMMAND_NOT_FOUND, FailureKind.UNKNOWN_SUBCOMMAND, FailureKind.UNKNOWN_OPTION)
)
"""Failures that say something about the person's typing and tools, not about a project."""

RUNNERS = frozenset(
    ("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi", "npx", "bunx", "pnpm", "yarn",
     "bundle", "mise", "direnv", "nix", "python", "python3", "py", "cargo", "conda", "micromamba")
)  # fmt: skip
"""Programs that run another one in the project's environment: ``uv run pytest``."""

REST = Slot(9, Takes.WORDS)
"""The words at the end, carried over as they are."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What one recovery teaches, before it is compared with what is known.

    ``bound``: it names what only this project has, and never leaves it.
    """

    trigger: Trigger
    remedy: Remedy
    scope: Scope
    bound: bool
    proven: bool


class Typed(NamedTuple):
    """One word: as the program sees it, and as it is typed in normal form."""

    value: str
    source: str


Words = Sequence[Typed]


class Shape(NamedTuple):
    """The segment's words before and after; the remedy is empty where they stay the same.

    ``same_tool``: the remedy is another name or another spelling of what was meant.
    """

    trigger: Pattern
    remedy: Pattern
    same_tool: bool = False


def draft_rule(recovery: Recovery, path: str) -> Draft | None:
    """Return the rule that follows from a recovery, or None where none can be put in words.

    ``path`` is a PATH to look programs up on.
    """
    failure = recovery.failure
    failed = failure.line.segments[failure.segment]
    fixed = recovery.fix_line.segments[recovery.fix_segment]
    if not (_fits(failure.line, failed) and _fits(recovery.fix_line, fixed)):
        return None
    if failure.kind is FailureKind.COMMAND_NOT_FOUND and _names_wrapper(failure, failed):
        return None  # without sudo or timeout: the trigger sets them aside
    if recovery.kind is RecoveryKind.ENVIRONMENT and _assign_the_same(failed, fixed):
        return None  # a mistyped value: the trigger sets variables aside, too
    shape = _shape(recovery, _typed(failure.line, failed), _typed(recovery.fix_line, fixed))
    steps = _steps(recovery)
    folders = _directories(recovery)
    if steps is None or folders is None:
        return None
    remedy = Remedy(
        kind=recovery.kind.value,
        words=shape.remedy,
        prefix=_prefix(recovery, failed, fixed),
        before=steps,
        directory=folders[1],
        shell_word=_is_shell_word(recovery),
    )
    if not (remedy.words or remedy.prefix or remedy.before or remedy.directory is not None):
        return None  # nothing differs: an unchanged re-run teaches nothing
    return _place(
        recovery, Trigger(failure.kind.value, shape.trigger, folders[0]), remedy, shape, path
    )


def _assign_the_same(failed: SimpleCommand, fixed: SimpleCommand) -> bool:
    """Whether a variable that is set for the mended command was set for the failed one, too."""
    before, after = (
        {word.text.partition("=")[0] for word in segment.assignments} for segment in (failed, fixed)
    )
    return not before.isdisjoint(after)


def _is_shell_word(recovery: Recovery) -> bool:
    """Whether the remedy begins with an alias or a function of the shell."""
    is_first = recovery.fix_segment == 0 and recovery.fix_line.segments[0].wrappers == 0
    return is_first and recovery.fix.word_kind in (WordKind.ALIAS, WordKind.FUNCTION)


_OF_PROJECTS = frozenset(("script", "task"))
"""Whose subcommands each project makes for itself: what npm runs, and make's targets."""


def _place(recovery: Recovery, trigger: Trigger, remedy: Remedy, shape: Shape, path: str) -> Draft:
    """Decide in which scope a rule is born."""
    run = recovery.failure.run
    where = where_remedy_lives(remedy, path, (run.worktree, run.project), same_tool=shape.same_tool)
    general = (
        recovery.kind is RecoveryKind.REPLACE
        and recovery.failure.kind in USER_KINDS
        and recovery.failure.domain not in _OF_PROJECTS
        and where is Where.OUTSIDE
        and (_has_slots(shape.trigger) or not _names_files(shape.trigger))
        and not (_is_interpreter(shape.trigger[0]) and _names_files(shape.trigger))
    )
    scope = Scope.USER if general else Scope.PROJECT
    return Draft(trigger, remedy, scope, where is Where.INSIDE, recovery.proven)


def _has_slots(pattern: Pattern) -> bool:
    return any(isinstance(part, Slot) for part in pattern)


def _names_files(pattern: Pattern) -> bool:
    return any(isinstance(part, str) and _looks_like_path(part) for part in pattern[1:])


def where_remedy_lives(
    remedy: Remedy, path: str, roots: Sequence[str], *, same_tool: bool = False
) -> Where:
    """Return whether what the remedy runs is the project's own.

    A relative path among its words and a program that only does what a file of the project says
    count as such; not where the remedy is merely the right spelling (``mkae`` → ``make``).
    """
    found = Where.OUTSIDE
    for line in remedy_lines(remedy):
        for segment in parse(line).segments:
            words = [word.text for word in segment.core]
            if any(_is_relative_path(word) for word in words):
                return Where.INSIDE
            if words and words[0] in REPOSITORY_RUNNERS and not same_tool:
                return Where.INSIDE
            where = where_is(words[0], path, roots) if words else Where.OUTSIDE
            if where is Where.INSIDE or _is_own_plugin(words, path, roots):
                return Where.INSIDE
            found = where if where is Where.UNKNOWN else found
    return found


def _is_own_plugin(words: Sequence[str], path: str, roots: Sequence[str]) -> bool:
    """Whether the project brings a program for this subcommand, as git and cargo run them."""
    if len(words) < 2 or "/" in words[1] or words[1].startswith("-"):
        return False
    name = f"{os.path.basename(words[0])}-{words[1]}"
    return where_is(name, path, roots) is Where.INSIDE


def remedy_lines(remedy: Remedy) -> list[str]:
    """Return the remedy's own words as command lines, slots left out."""
    own = [part if isinstance(part, str) else part.prefix for part in remedy.words]
    command = " ".join([*remedy.prefix, *(word for word in own if word)])
    return [*remedy.before, command] if command else [*remedy.before]


# -- words ---------------------------------------------------------------------------------------


def _fits(line: CommandLine, segment: SimpleCommand) -> bool:
    """Whether a segment can be part of a rule: short, printable, without a here-document."""
    text = line.text[segment.start : segment.end]
    return (
        bool(segment.core)
        and line.complete
        and len(text) <= SEGMENT_MAX
        and len(segment.words) <= WORDS_MAX
        and is_harmless(text)
        and "\n" not in text
        and all(redirection.body is None for redirection in segment.redirections)
    )


def _names_wrapper(failure: Failure, failed: SimpleCommand) -> bool:
    """Whether the program that is missing is one that was to run another one."""
    wrappers = {word.text for word in failed.words[: failed.wrappers]}
    return failed.program not in failure.named and bool(wrappers & set(failure.named))


def _typed(line: CommandLine, segment: SimpleCommand) -> tuple[Typed, ...]:
    return tuple(
        Typed(word.text, quote(word.text) if word.literal else line.text[word.start : word.end])
        for word in segment.core
    )


def _values(words: Words) -> tuple[str, ...]:
    return tuple(word.value for word in words)


def _sources(words: Words) -> tuple[str, ...]:
    return tuple(word.source for word in words)


def _ends_with(words: Words, rest: Words) -> bool:
    return len(words) >= len(rest) and _values(words[len(words) - len(rest) :]) == _values(rest)


def similar(one: str, other: str) -> bool:
    """Whether one word may be the other one mistyped: at most two slips, fewer in short words."""
    one, other = one.lower(), other.lower()
    shorter = min(len(one), len(other))
    slips = 2 if shorter >= 4 else 1 if shorter >= 2 else 0
    return OSA.distance(one, other, score_cutoff=slips) <= slips


def _looks_like_path(word: str) -> bool:
    return "/" in word or (word.rpartition(".")[2].isalnum() and "." in word[1:])


def _is_relative_path(word: str) -> bool:
    return (
        "/" in word
        and not word.startswith(("/", "~", "-", "$", "@"))
        and "://" not in word
        and "=" not in word
        and (
            word.startswith(("./", "../", ".")) or "/bin/" in word or word.endswith((".sh", ".py"))
        )
    )


# -- which words matter --------------------------------------------------------------------------


def _shape(recovery: Recovery, failed: Words, fixed: Words) -> Shape:
    failure = recovery.failure
    if recovery.kind is RecoveryKind.PRIVILEGE and _values(failed) == _values(fixed):
        return _privilege(failure, failed)
    if recovery.kind is RecoveryKind.REPLACE:
        for generalise in (_GENERALISERS.get(failure.kind), _runner):
            shape = generalise(failure, failed, fixed) if generalise is not None else None
            if shape is not None:
                return shape
    return _exact(failed, fixed)


def _exact(failed: Words, fixed: Words) -> Shape:
    return Shape(_values(failed), () if _values(failed) == _values(fixed) else _sources(fixed))


def _program(failure: Failure, failed: Words, fixed: Words) -> Shape | None:
    """Return the shape for a program missing or mistyped: what follows it does not matter."""
    old, rest = failed[0].value, failed[1:]
    if failure.named and old not in failure.named:
        return None  # something that it runs is missing
    head = _same_tool_head(old, fixed)
    if head:
        return Shape((old, REST), (*_sources(fixed[:head]), REST), same_tool=True)
    return _other_tool((failed[0],), rest, fixed)


def _same_tool_head(old: str, fixed: Words) -> int:
    """Return how many words of ``fixed`` stand for the program ``old``, 0 where none do.

    ``git`` for ``gti``, ``docker compose`` for ``docker-compose``, ``python -m pytest`` and
    ``.venv/bin/pytest`` for ``pytest``.
    """
    name = old.rpartition("/")[2]
    for count, word in enumerate(_values(fixed[:4]), start=1):
        if word.rpartition("/")[2] == name and (count > 1 or word != old):
            return count
    for count in (2, 3):
        if len(fixed) >= count and similar("-".join(_values(fixed[:count])), name):
            return count
    return 1 if fixed and similar(fixed[0].value.rpartition("/")[2], name) else 0


def _other_tool(head: Words, rest: Words, fixed: Words) -> Shape | None:
    """Another tool for the same words: options and subcommands may mean something else to it.

    So only words that look like paths become slots, and only where all words were carried over.
    """
    if not rest or not _ends_with(fixed, rest) or len(fixed) == len(rest):
        return None
    carried: list[str | Slot] = []
    for number, word in enumerate(rest, start=1):
        is_operand = _looks_like_path(word.value) and not word.value.startswith("-")
        carried.append(Slot(number, Takes.WORD) if is_operand else word.value)
    again = [part if isinstance(part, Slot) else quote(part) for part in carried]
    new = _sources(fixed[: len(fixed) - len(rest)])
    return Shape((*_values(head), *carried), (*new, *again))


def _subcommand(failure: Failure, failed: Words, fixed: Words) -> Shape | None:
    """Return the shape for an unknown subcommand: options before and words behind are free."""
    place = _place_of_named(failure, failed)
    if place is None or _values(fixed[:place]) != _values(failed[:place]):
        return None
    bad, rest = failed[place].value, failed[place + 1 :]
    count = _same_word_head(bad, fixed[place:])
    if count == 0:
        if not _ends_with(fixed[place:], rest) or len(fixed) - len(rest) <= place:
            return None
        return _other_tool(failed[: place + 1], rest, fixed)
    run = _script(failed, place)
    script: Pattern = (*_values(failed[:run]), Slot(8, Takes.OPTIONS)) if run else ()
    before = (*script, *_with_options(failed[run:place]))
    new = _sources(fixed[place : place + count])
    return Shape((*before, bad, REST), (*_quoted(before), *new, REST), same_tool=True)


def _place_of_named(failure: Failure, failed: Words) -> int | None:
    """Return the index of the word that the error names."""
    for name in (*failure.named, failure.subcommand.rpartition(" ")[2]):
        for index, word in enumerate(failed[1:], start=1):
            if name and word.value == name:
                return index
    return None


def _same_word_head(bad: str, new: Words) -> int:
    """Return how many words stand for the mistyped one: ``build`` or ``run build`` for either."""
    for count, word in enumerate(_values(new[:2]), start=1):
        if (word == bad and count > 1) or (count == 1 and word != bad and similar(word, bad)):
            return count
    return 0


def _with_options(head: Words) -> Pattern:
    """Return the words before a subcommand, with room for options behind each."""
    parts: list[str | Slot] = []
    option_before = False
    for word in _values(head):
        is_option = word.startswith("-")
        if not is_option and not option_before:
            parts += [word, Slot(len(parts), Takes.OPTIONS)]
        option_before = is_option and "=" not in word
    return tuple(parts)


def _quoted(pattern: Pattern) -> Pattern:
    return tuple(part if isinstance(part, Slot) else quote(part) for part in pattern)


def _option(failure: Failure, failed: Words, fixed: Words) -> Shape | None:
    """Return the shape for an unknown option: all but program and subcommand is free."""
    place = _place_of_option(failure, failed)
    if place is None or not fixed or fixed[0].value != failed[0].value:
        return None
    new = _option_instead(failed, fixed, place)
    if new is None:
        return None
    before = _before_option(failure, failed[:place], _script(failed, place) or 1)
    bad = failed[place]
    old_name, equals, value = bad.value.partition("=")
    if equals and len(new) == 1 and new[0].value.partition("=")[2] == value:
        name = new[0].value.partition("=")[0]
        bad_part: str | Slot = Slot(7, Takes.VALUE, f"{old_name}=")
        new_parts: Pattern = (Slot(7, Takes.VALUE, f"{name}="),)
    else:
        bad_part, new_parts = bad.value, _sources(new)
    return Shape((*before, bad_part, REST), (*_quoted(before), *new_parts, REST), same_tool=True)


def _place_of_option(failure: Failure, failed: Words) -> int | None:
    for index, word in enumerate(failed[1:], start=1):
        if word.value.startswith("-") and any(_is_option(word.value, n) for n in failure.named):
            return index
    return None


def _is_option(word: str, named: str) -> bool:
    """Whether an error that names ``named`` may mean this word: ``q`` and ``-q`` in ``-lq``."""
    bare = named.lstrip("-")
    if len(bare) == 1:
        return not word.startswith("--") and bare in word[1:]
    return word.partition("=")[0].lstrip("-") == bare.partition("=")[0]


def _option_instead(failed: Words, fixed: Words, place: int) -> Words | None:
    """Return what stands in the option's place afterwards: nothing, another one, a few words."""
    before, rest = failed[:place], failed[place + 1 :]
    if _values(fixed[:place]) == _values(before) and _ends_with(fixed[place:], rest):
        new = fixed[place : len(fixed) - len(rest)]
        return new if len(new) <= 3 else None
    known = set(_values(failed))
    for word in fixed[1:]:
        if word.value not in known and similar(word.value, failed[place].value):
            return (word,)
    return None


def _before_option(failure: Failure, before: Words, head: int) -> Pattern:
    """Return the ``head`` (program, script) and subcommand with room for any words behind each."""
    wanted = set(failure.subcommand.split())
    parts: list[str | Slot] = [*_values(before[:head]), Slot(1, Takes.WORDS)]
    for word in _values(before[head:]):
        if word in wanted:
            parts += [word, Slot(len(parts), Takes.WORDS)]
    return tuple(parts)


def _privilege(failure: Failure, failed: Words) -> Shape:
    """Rights are missing: for ``apt install`` it does not matter what; for ``cat`` it does."""
    if not failure.subcommand:
        return Shape(_values(failed), ())
    fixed_words = {failed[0].value, *failure.subcommand.split()}
    parts: list[str | Slot] = []
    for word in _values(failed):
        if word in fixed_words or word.startswith("-"):
            parts.append(word)
        elif not parts or isinstance(parts[-1], str):
            parts.append(Slot(len(parts), Takes.WORDS))
    return Shape(tuple(parts), ())


def _runner(failure: Failure, failed: Words, fixed: Words) -> Shape | None:
    """Return the shape for the same words behind a runner or with an environment's program."""
    new = _values(fixed)
    behind_runner = (
        new[0] in RUNNERS and _ends_with(fixed, failed) and 0 < len(fixed) - len(failed) <= 3
    )
    from_environment = (
        new[0] != failed[0].value
        and new[0].rpartition("/")[2] == failed[0].value.rpartition("/")[2]
        and _values(fixed[1:]) == _values(failed[1:])
    )
    if not (behind_runner or from_environment) or failure.kind is FailureKind.OTHER:
        return None
    head = _what_is_run(failed)
    lead = len(fixed) - len(failed)
    return Shape((*_values(failed[:head]), REST), (*_sources(fixed[: lead + head]), REST))


def _what_is_run(words: Words) -> int:
    """Return how many words say what is run: the program, its options, the script or module."""
    for index, word in enumerate(words[1:], start=1):
        if not word.value.startswith("-"):
            return index + 1
    return len(words)


def _script(words: Words, before: int) -> int:
    """Return how many words, fewer than ``before``, name the script that an interpreter runs."""
    head = _what_is_run(words)
    return head if _is_interpreter(words[0].value) and head <= before else 0


def _is_interpreter(program: str | Slot) -> bool:
    """Whether what this program understands depends on what it runs."""
    if isinstance(program, Slot):
        return False
    name = program.rpartition("/")[2]
    return PYTHON.match(name) is not None or name in _INTERPRETERS


_INTERPRETERS = frozenset(
    ("bash", "bun", "dash", "deno", "java", "lua", "node", "perl", "php", "ruby", "sh", "zsh")
)


def _no_upstream(_failure: Failure, failed: Words, fixed: Words) -> Shape | None:
    """Return the shape for a branch without upstream: ``HEAD`` names whichever it is."""
    options = {"-u", "--set-upstream"}
    if len(fixed) < 3 or not options & set(_values(fixed)) or fixed[-1].value.startswith("-"):
        return None
    return Shape(_values(failed), (*_sources(fixed[:-1]), "HEAD"))


_GENERALISERS: dict[FailureKind, Callable[[Failure, Words, Words], Shape | None]] = {
    FailureKind.COMMAND_NOT_FOUND: _program,
    FailureKind.UNKNOWN_SUBCOMMAND: _subcommand,
    FailureKind.MISSING_TARGET: _subcommand,
    FailureKind.UNKNOWN_OPTION: _option,
    FailureKind.NO_UPSTREAM: _no_upstream,
}


# -- what is put before --------------------------------------------------------------------------


def _prefix(recovery: Recovery, failed: SimpleCommand, fixed: SimpleCommand) -> tuple[str, ...]:
    """Return the variables or the wrapper that only the mended command has."""
    text = recovery.fix_line.text
    if recovery.kind is RecoveryKind.ENVIRONMENT:
        known = {word.text for word in failed.assignments}
        return tuple(
            text[word.start : word.end] for word in fixed.assignments if word.text not in known
        )
    if recovery.kind is RecoveryKind.PRIVILEGE:
        known = {word.text for word in failed.words[: failed.wrappers]}
        new = [w for w in fixed.words[: fixed.wrappers] if w.text not in known]
        return tuple(text[w.start : w.end] for w in new if not is_assignment(w.text))
    return ()


def _steps(recovery: Recovery) -> tuple[str, ...] | None:
    """Return the command lines to run first, or None where they cannot be said in a hint."""
    if recovery.kind not in (RecoveryKind.PREREQUISITE, RecoveryKind.ENVIRONMENT):
        return ()
    steps = [step for step in map(_step(recovery.failure), recovery.needed) if step is not None]
    steps += _leading_steps(recovery)
    if len(steps) < len(recovery.needed) or len(steps) > STEPS_MAX:
        return None
    if any(len(step) > SEGMENT_MAX or not is_harmless(step) for step in steps):
        return None
    return tuple(steps)


def _step(failure: Failure) -> Callable[[CommandRun], str | None]:
    """Return how to say a needed run from where the failed command stood."""

    def say(run: CommandRun) -> str | None:
        command = run.command.strip()
        if run.cwd == failure.run.cwd or parse(command).compound:
            return command if run.cwd == failure.run.cwd else None
        relative = os.path.relpath(run.cwd, failure.run.cwd)
        if run.worktree != failure.run.worktree or len(relative) > 60:
            return None
        return f"(cd {quote(relative)} && {command})"

    return say


def _leading_steps(recovery: Recovery) -> list[str]:
    """Return what the mended line itself ran first: ``source .env && …``."""
    line, index = recovery.fix_line, recovery.fix_segment
    told = {recovery.failure.line.text[s.start : s.end] for s in recovery.failure.line.segments}
    first = next((s for s in line.segments[:index] if line.text[s.start : s.end] not in told), None)
    if first is None or line.segments[index].depth or line.compound:
        return []
    text = line.text[first.start : line.operators[index - 1].start].strip()
    steps = parse(text)
    only_goes = len(steps.segments) == 1 and steps.segments[0].program == "cd"
    return [] if only_goes or not steps.complete else [text]


def _directories(recovery: Recovery) -> tuple[str | None, str | None] | None:
    """Return where it failed and where it passes, relative to the worktree.

    (None, None) where the directory is not what mended it; None where it cannot be told.
    """
    if recovery.kind is not RecoveryKind.DIRECTORY:
        return (None, None)
    failure = recovery.failure
    here = directory_of(failure.line, failure.segment, failure.run.cwd)
    there = directory_of(recovery.fix_line, recovery.fix_segment, recovery.fix.cwd)
    if here is None or there is None:
        return None
    if here == there:
        return (None, None)
    root = os.path.realpath(failure.run.worktree)
    return (_below(here, root), _below(there, root))


def _below(folder: str, root: str) -> str:
    """Return a folder relative to the worktree where it lies in it, else as it is."""
    inside = folder == root or folder.startswith(root.rstrip("/") + "/")
    return os.path.relpath(folder, root) if inside else folder
