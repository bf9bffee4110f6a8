"""Which runs went wrong *as a command*, in which part, and how.

The exit code and the program decide before words do. Words in the output of a success never make a
failure; but where a pipe, a ``;`` or an ``||`` hides an exit code, an error line of the hidden part
marks a *masked* failure, which can never count as a fix.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from flightrec.expected_status import (
    ABORTED,
    ANSWERS,
    ANSWERS_OF,
    COMPILERS,
    EXIT_KINDS,
    FIRST_SIGNAL,
    KILLED,
    LAST_SIGNAL,
    LINTERS,
    TIME_LIMIT,
    USAGE,
)
from flightrec.failed_output import LINE_MAX, FailedOutput
from flightrec.failure_kinds import UNTEACHABLE, FailureKind, K
from flightrec.failure_tables import SHELL_WORDINGS, WORDINGS, Table
from flightrec.fault import (
    TEST_WORDINGS,
    blame,
    find_fault,
    first_worker,
    hidden_segments,
    is_test_run,
    last_worker,
    segment_mentioned,
    segment_named,
)
from flightrec.ingest import CommandRun
from flightrec.invocation import Invocation, base_name, invocations
from flightrec.shell_words import CommandLine
from flightrec.signature import make_signature

__all__ = ["Failure", "FailureKind", "classify"]

_HARNESS_LIMIT = re.compile(r"(?i)command timed out|time limit exceeded|timeout: sending signal")
_COLLECTION = re.compile(r"(?i)error(?:s during)? collecti(?:ng|on)|error collecting|usage: ")
_MASKABLE = (
    "not found",
    "fail",
    "no such",
    "denied",
    "error",
    "fatal",
    "invalid",
    "unknown",
    "unrecogni",
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that went wrong as a command.

    ``segment`` is the index in ``line.segments`` of the part that failed. ``signature`` is stable
    over paths, numbers, versions and languages. ``named`` is what the error names: the program,
    option, module or file. ``masked`` tells that the line's exit was 0 all the same (``| tail``,
    ``|| true``). A failure that is not ``teachable`` is an outcome of work: it is counted, and no
    recovery is looked for. ``domain`` says whose world the error belongs to ("python", "git", …),
    as far as that decides what could mend it.
    """

    run: CommandRun
    line: CommandLine
    segment: int
    kind: FailureKind
    program: str
    subcommand: str
    signature: str
    teachable: bool
    named: tuple[str, ...]
    masked: bool
    domain: str = ""


@dataclass(frozen=True, slots=True)
class _Cause:
    """What was found out about a failed run before it is put together."""

    segment: int
    kind: FailureKind
    named: tuple[str, ...] = ()
    domain: str = ""
    message: str = ""


def classify(run: CommandRun, line: CommandLine) -> Failure | None:
    """Return how this run failed, or None where it did not fail as a command."""
    if run.exit is None or not line.segments:
        return None
    if run.exit == 0:
        cause = _masked_cause(run, line)
    elif _was_ended(run):
        return None
    else:
        cause = _cause(run, line)
    return None if cause is None else _failure(run, line, cause)


def _was_ended(run: CommandRun) -> bool:
    """Whether a signal ended the run that is no crash: a person, the pipe, another program."""
    status = run.exit or 0
    return FIRST_SIGNAL <= status <= LAST_SIGNAL and status not in ABORTED and status != KILLED


def _failure(run: CommandRun, line: CommandLine, cause: _Cause) -> Failure:
    invocation = invocations(line)[cause.segment]
    kind = _kind_here(run, invocation, cause)
    subcommand = "" if kind is K.COMMAND_NOT_FOUND else invocation.subcommand
    parts = (cause.message,) if kind is K.OTHER else cause.named
    program = base_name(invocation.program)
    return Failure(
        run=run,
        line=line,
        segment=cause.segment,
        kind=kind,
        program=program,
        subcommand=subcommand,
        signature=make_signature(kind, program, subcommand, parts),
        teachable=kind not in UNTEACHABLE and (kind is not K.OTHER or bool(cause.message)),
        named=cause.named or _words_in(cause.message, invocation),
        masked=run.exit == 0,
        domain=cause.domain,
    )


def _kind_here(run: CommandRun, invocation: Invocation, cause: _Cause) -> FailureKind:
    """Return the kind, with a script that may not be run told apart from a file not to be read."""
    if cause.kind is not K.PERMISSION:
        return cause.kind
    program = base_name(invocation.program)
    refused = run.exit == 126 or ("/" in invocation.program and program in cause.message)
    return K.NOT_EXECUTABLE if refused else cause.kind


def _cause(run: CommandRun, line: CommandLine) -> _Cause | None:
    """Return what went wrong in a run whose exit code is not 0."""
    output = FailedOutput(run.tail)
    parts = invocations(line)
    said = _shell_said(output, line, parts)
    if said is not None:
        return said
    at_fault = find_fault(run, line, output, parts)
    invocation = parts[at_fault]
    if _is_answer(run, line, at_fault, invocation, output):
        return None
    kind = _kind_of_exit(run, output)
    if kind is not None:
        return _Cause(at_fault, kind)
    if run.exit in UNSEEN_KINDS and not output.text.strip():
        return _Cause(at_fault, UNSEEN_KINDS[run.exit], (invocation.program,))
    cause = _cause_in_words(run, invocation, at_fault, output)
    return replace(cause, segment=_segment_of(cause, parts))


def _segment_of(cause: _Cause, parts: Sequence[Invocation]) -> int:
    """Return the part that failed: of several of one tool, the one with what the error names."""
    blamed = parts[cause.segment]
    if not cause.named or _has_named(blamed, cause):
        return cause.segment
    same = [i for i, part in enumerate(parts) if part.name == blamed.name]
    return next((i for i in same if _has_named(parts[i], cause)), cause.segment)


def _has_named(part: Invocation, cause: _Cause) -> bool:
    return any(word.partition("=")[0] in cause.named for word in part.words)


def _shell_said(
    output: FailedOutput, line: CommandLine, parts: Sequence[Invocation]
) -> _Cause | None:
    """Return what the shell itself says, which needs no exit code to be believed."""
    for wording, named, message in output.find(SHELL_WORDINGS):
        segment = segment_named(named[0], line, parts) if named else None
        kind = wording.kind
        if kind is K.COMMAND_NOT_FOUND and named and "/" in named[0]:
            kind = K.MISSING_FILE
        if kind is K.SHELL_SYNTAX and wording.domain != "glob":
            return _Cause(first_worker(parts), kind, named, wording.domain, message)
        if segment is None:
            segment = segment_mentioned(message, parts)
            if segment is None:
                segment = last_worker(line, parts)
        return _Cause(segment, kind, named, wording.domain, message)
    return None


_COMPILE_WORDINGS = Table(row for row in WORDINGS if row.kind is K.COMPILE_ERROR)
_MODULE_KINDS = frozenset((K.MISSING_MODULE, K.MISSING_LIBRARY, K.MISSING_MANIFEST))
_MODULE_WORDINGS = Table(
    row
    for row in WORDINGS
    if row.kind in _MODULE_KINDS or row.literal in ("fatal error", "couldn't read")
)
_SURE_KINDS = frozenset(
    (K.COMMAND_NOT_FOUND, K.MISSING_MODULE, K.MISSING_FILE, K.PERMISSION, K.UNKNOWN_OPTION,
     K.UNKNOWN_SUBCOMMAND, K.NOT_A_REPOSITORY, K.NO_UPSTREAM, K.REJECTED, K.MISSING_PACKAGE,
     K.MANAGED_ENVIRONMENT, K.WRONG_VERSION, K.MISSING_TARGET, K.CONNECTION)
)  # fmt: skip


def _is_answer(
    run: CommandRun, line: CommandLine, index: int, part: Invocation, output: FailedOutput
) -> bool:
    """Whether this exit code is a normal answer of this program: no match, not equal, not there."""
    status = run.exit
    if status is None or line.segments[index].negated:
        return True
    wrapper = part.wrappers[-1:] if not part.program else ()
    if part.wrappers and (part.wrappers[0], part.wrappers[1:2]) in _ASKING_WRAPPERS:
        return True
    codes = ANSWERS.get(part.name or (wrapper[0] if wrapper else ""), frozenset())
    first = part.words[0] if part.words else ""
    codes |= ANSWERS_OF.get((part.name, first), frozenset())
    codes |= ANSWERS_OF.get((part.name, part.subcommand), frozenset())
    if status in codes and not output.holds_line_of(part.name.lower()):
        return True
    return part.name == "git" and "nothing to commit" in output.lowered


_ASKING_WRAPPERS = frozenset((("command", ("-v",)), ("command", ("-V",))))


UNSEEN_KINDS = {126: K.NOT_EXECUTABLE, 127: K.COMMAND_NOT_FOUND}
"""What a shell's own exit codes say where nobody could see what it wrote."""


def _kind_of_exit(run: CommandRun, output: FailedOutput) -> FailureKind | None:
    """Return the kind that the exit code alone decides."""
    if run.exit == TIME_LIMIT or _HARNESS_LIMIT.search(output.text[:400]):
        return K.HARNESS_LIMIT
    if run.exit == KILLED or run.signal == KILLED - 128:
        return K.OUT_OF_MEMORY if "out of memory" in output.lowered else K.CRASH
    if run.exit in ABORTED and "heap out of memory" not in output.lowered:
        return K.CRASH
    return None


def _cause_in_words(run: CommandRun, part: Invocation, index: int, output: FailedOutput) -> _Cause:
    """Return the cause that the program's words tell; the exit code's kind where they do not."""
    for wordings in _readings(part, output):
        for wording, names, message in output.find(wordings):
            if wording.kind is K.TEST_FAILURE and output.lists_options:
                continue  # the runner did not understand the call
            option = wording.kind is K.UNKNOWN_OPTION
            named = tuple(_as_option(n, part) for n in names) if option else names
            return _Cause(index, wording.kind, named, wording.domain, message)
    kind = _kind_without_words(run, part)
    if kind is K.OTHER and output.lists_options:
        kind = K.USAGE
    return _Cause(index, kind, (), "", output.error_line())


def _kind_without_words(run: CommandRun, part: Invocation) -> FailureKind:
    kind = EXIT_KINDS.get((part.name, run.exit or 0))
    if kind is None and part.name in LINTERS and run.exit == 1:
        kind = K.LINT_FAILURE
    return kind or (K.USAGE if run.exit == USAGE else K.OTHER)


def _readings(part: Invocation, output: FailedOutput) -> Iterator[Table]:
    """Yield the tables in the order in which this program's output is to be read."""
    if is_test_run(part) and not _COLLECTION.search(output.text):
        yield TEST_WORDINGS
    if part.name in COMPILERS:
        yield _MODULE_WORDINGS
        if part.subcommand not in _NOT_COMPILING:
            yield _BEFORE_COMPILING
            yield _COMPILE_WORDINGS
    yield WORDINGS


_NOT_COMPILING = frozenset(("add", "install", "mod", "mod tidy", "get", "new", "init", "publish"))
_BEFORE_COMPILING = Table(
    row
    for row in WORDINGS
    if row.kind in (K.UNKNOWN_SUBCOMMAND, K.UNKNOWN_OPTION, K.MANAGED_ENVIRONMENT, K.LOCKFILE,
                    K.MISSING_PACKAGE, K.WRONG_VERSION, K.DISK_FULL)
)  # fmt: skip


def _as_option(name: str, part: Invocation) -> str:
    """Return an option as it was typed; errors often leave its dashes out."""
    if name.startswith("-"):
        return name
    for typed in part.words:
        if typed.lstrip("-").partition("=")[0] == name and typed.startswith("-"):
            return typed.partition("=")[0]
    return f"-{name}" if len(name) == 1 else f"--{name}"


def _words_in(message: str, part: Invocation) -> tuple[str, ...]:
    """Return which of the command's own words an error line holds."""
    if not message:
        return ()
    shown = set(re.findall(r"[^\s'\"(),;]+", message[:LINE_MAX]))
    shown |= {word.rstrip(":.") for word in shown}
    return tuple(dict.fromkeys(w for w in part.words if w in shown and len(w) > 1))[:4]


def _masked_cause(run: CommandRun, line: CommandLine) -> _Cause | None:
    """Return what went wrong in a part whose exit code the line hides."""
    if not run.tail or len(line.segments) < 2:
        return None
    hidden = hidden_segments(run, line)
    if not hidden:
        return None
    lowered = run.tail.lower()
    if not any(mark in lowered for mark in _MASKABLE):
        return None
    output = FailedOutput(run.tail)
    parts = invocations(line)
    said = _shell_said(output, line, parts)
    if said is not None and said.segment in hidden:
        return said
    return _masked_in_words(run, parts, hidden, output)


def _masked_in_words(
    run: CommandRun, parts: Sequence[Invocation], hidden: Sequence[int], output: FailedOutput
) -> _Cause | None:
    """Return the error of a hidden part, where a line of it begins as this program's errors do."""
    for index in hidden:
        if blame(parts[index], output) == 0:
            continue
        cause = _cause_in_words(run, parts[index], index, output)
        if cause.kind in _SURE_KINDS or cause.kind in (K.TEST_FAILURE, K.COMPILE_ERROR):
            return cause
    return None
