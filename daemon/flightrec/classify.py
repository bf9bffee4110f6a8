"""Which runs went wrong *as a command*, in which part, and how.

The exit code and the program decide before words do. Words in the output of a success never make a
failure; but where a pipe, a ``;`` or an ``||`` hides an exit code, an error line of the hidden part
marks a *masked* failure, which can never count as a fix.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    NEVER_AT_FAULT,
    TEST_RUNNERS,
    TEST_SUBCOMMANDS,
    TIME_LIMIT,
    USAGE,
)
from flightrec.failure_kinds import UNTEACHABLE, FailureKind, K
from flightrec.failure_tables import SHELL_WORDINGS, WORDINGS, Wording, keys_in
from flightrec.ingest import CommandRun
from flightrec.invocation import Invocation, invocations
from flightrec.languages import to_english
from flightrec.shell_words import CommandLine
from flightrec.signature import make_signature, plain

__all__ = ["Failure", "FailureKind", "classify"]

_LINE_MAX = 500
_OCCURRENCES_MAX = 6
_HARNESS_LIMIT = re.compile(r"(?i)command timed out|time limit exceeded|timeout: sending signal")
_LIST_ENDS = frozenset((";", "&", "\n"))
_PIPES = frozenset(("|", "|&"))
_COLLECTION = re.compile(r"(?i)error(?:s during)? collecti(?:ng|on)|error collecting|usage: ")
_ERROR_LINE = re.compile(r"(?i)\b(?:error|fatal|failed|cannot|invalid|unknown|denied|not found)\b")
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


class _Output:
    """The tail as it is searched: plain, in English, and once more in lower case."""

    def __init__(self, tail: str) -> None:
        self.text = plain(tail)
        self.lowered = self.text.lower()
        self._keys = keys_in(self.lowered)
        self._held: dict[str, bool] = {}
        english = to_english(self.text, self.lowered, self._keys)
        if english is not self.text:
            self.text, self.lowered = english, english.lower()
            self._keys = keys_in(self.lowered)
        if len(self.lowered) != len(self.text):  # a letter whose lower case is longer (İ)
            self.text = self.lowered

    def find(self, wordings: Sequence[Wording]) -> Iterator[tuple[Wording, tuple[str, ...], str]]:
        """Yield each wording that fits, with the names in it and its line; the last line first."""
        for wording in wordings:
            if not self._may_hold(wording):
                continue
            for line in self.lines_with(wording.literal):
                match = wording.pattern.search(line)
                if match is not None:
                    yield wording, _names(match), line
                    break

    def _may_hold(self, wording: Wording) -> bool:
        if wording.key and wording.key not in self._keys:
            return False
        held = self._held.get(wording.literal)
        if held is None:
            held = self._held[wording.literal] = wording.literal in self.lowered
        return held

    def lines_with(self, literal: str) -> Iterator[str]:
        """Yield the lines that hold a literal, the last one first, each cut to a bound."""
        position = len(self.lowered)
        for _ in range(_OCCURRENCES_MAX):
            position = self.lowered.rfind(literal, 0, position)
            if position < 0:
                return
            start = self.lowered.rfind("\n", 0, position) + 1
            end = self.lowered.find("\n", position)
            start = max(start, position - _LINE_MAX)
            yield self.text[start : end if 0 <= end < start + 2 * _LINE_MAX else start + _LINE_MAX]
            position = start

    def error_line(self) -> str:
        """Return the line that most looks like the error, for signatures of unknown kinds."""
        lines = [line.strip() for line in self.text[-4096:].splitlines()]
        lines = [line for line in lines if line and not line.startswith("> ")]  # npm's echo
        for line in lines:
            if _ERROR_LINE.search(line[:_LINE_MAX]):
                return line[:_LINE_MAX]
        return lines[-1][:_LINE_MAX] if lines else ""


def _names(match: re.Match[str]) -> tuple[str, ...]:
    """Return what an error names, without the sentence's punctuation; ``cd..`` keeps its own."""
    names = (name.rstrip(":,;") for name in match.groups() if name)
    bare = (n[:-1] if n.endswith(".") and not n.endswith("..") else n for n in names)
    return tuple(name for name in bare if any(map(str.isalnum, name)))


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
    program = os.path.basename(invocation.program)
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
    program = os.path.basename(invocation.program)
    refused = run.exit == 126 or ("/" in invocation.program and program in cause.message)
    return K.NOT_EXECUTABLE if refused else cause.kind


def _cause(run: CommandRun, line: CommandLine) -> _Cause | None:
    """Return what went wrong in a run whose exit code is not 0."""
    output = _Output(run.tail)
    parts = invocations(line)
    said = _shell_said(output, line, parts)
    if said is not None:
        return said
    at_fault = _at_fault(run, line, output, parts)
    invocation = parts[at_fault]
    if _is_answer(run, line, at_fault, invocation, output):
        return None
    kind = _kind_of_exit(run, output)
    if kind is not None:
        return _Cause(at_fault, kind)
    if run.exit in UNSEEN_KINDS and not output.text.strip():
        return _Cause(at_fault, UNSEEN_KINDS[run.exit], (invocation.program,))
    return _cause_in_words(run, invocation, at_fault, output)


def _shell_said(output: _Output, line: CommandLine, parts: Sequence[Invocation]) -> _Cause | None:
    """Return what the shell itself says, which needs no exit code to be believed."""
    for wording, named, message in output.find(SHELL_WORDINGS):
        segment = _segment_named(named[0], line, parts) if named else None
        kind = wording.kind
        if kind is K.COMMAND_NOT_FOUND and named and "/" in named[0]:
            kind = K.MISSING_FILE
        if kind is K.SHELL_SYNTAX and wording.domain != "glob":
            return _Cause(_first_worker(parts), kind, named, wording.domain, message)
        if segment is None:
            segment = _mentioned(message, parts)
            if segment is None:
                segment = _last_worker(line, parts)
        return _Cause(segment, kind, named, wording.domain, message)
    return None


def _segment_named(name: str, line: CommandLine, parts: Sequence[Invocation]) -> int | None:
    """Return the segment that would have run the program of this name."""
    for index, part in enumerate(parts):
        if name in (part.program, *part.wrappers):
            return index
    for index, segment in enumerate(line.segments):
        if any(word.text == name for word in segment.words):
            return index
    return None


def _mentioned(message: str, parts: Sequence[Invocation]) -> int | None:
    for index, part in enumerate(parts):
        if part.name and message.startswith((f"{part.name}: ", f"{part.program}: ")):
            return index
    return None


def _first_worker(parts: Sequence[Invocation]) -> int:
    return next((i for i, p in enumerate(parts) if p.name not in NEVER_AT_FAULT), 0)


def _last_worker(line: CommandLine, parts: Sequence[Invocation]) -> int:
    """Return the last segment of the last list that could have given the exit code."""
    first = _start_of_last_list(line)
    for index in range(len(parts) - 1, first - 1, -1):
        if parts[index].name not in NEVER_AT_FAULT:
            return index
    return len(parts) - 1


def _start_of_last_list(line: CommandLine) -> int:
    """Return the first segment of what follows the last ``;``, ``&`` or newline."""
    for index in range(len(line.operators) - 1, -1, -1):
        if line.operators[index].text in _LIST_ENDS and index + 1 < len(line.segments):
            return index + 1
    return 0


def _at_fault(
    run: CommandRun, line: CommandLine, output: _Output, parts: Sequence[Invocation]
) -> int:
    """Return the index of the segment that failed."""
    if len(parts) == 1:
        return 0
    by_status = _by_pipestatus(run, line)
    if by_status is not None:
        return by_status
    scores = [_blame(part, output) for part in parts]
    best = max(scores)
    if best > 0:
        return max(index for index, score in enumerate(scores) if score == best)
    return _last_worker(line, parts)


def _by_pipestatus(run: CommandRun, line: CommandLine) -> int | None:
    """Return the failed member of the pipeline whose statuses the shell told."""
    if len(run.pipestatus) < 2:
        return None
    pipelines = [p for p in _pipelines(line) if len(p) == len(run.pipestatus)]
    if not pipelines:
        return None
    failed = [i for i, s in zip(pipelines[-1], run.pipestatus, strict=True) if s not in (0, 141)]
    return failed[0] if failed else None


def _pipelines(line: CommandLine) -> list[list[int]]:
    pipelines = [[0]]
    for index in range(1, len(line.segments)):
        if index <= len(line.operators) and line.operators[index - 1].text in _PIPES:
            pipelines[-1].append(index)
        else:
            pipelines.append([index])
    return pipelines


def _blame(part: Invocation, output: _Output) -> int:
    """Return how much the output speaks for this part's failing; 0 where it says nothing."""
    if not part.name or part.name in NEVER_AT_FAULT:
        return 0
    name = part.name.lower()
    for label in {name, os.path.basename(part.program).lower()}:
        if output.lowered.startswith(f"{label}: ") or f"\n{label}: " in output.lowered:
            return 3
    if _is_test_run(part) and any(True for _ in output.find(_TEST_WORDINGS)):
        return 2
    domain = _DOMAINS.get(name)
    return 1 if domain is not None and domain.search(output.text) else 0


_TEST_WORDINGS = tuple(row for row in WORDINGS if row.kind is K.TEST_FAILURE)
_COMPILE_WORDINGS = tuple(row for row in WORDINGS if row.kind is K.COMPILE_ERROR)
_MODULE_KINDS = frozenset((K.MISSING_MODULE, K.MISSING_LIBRARY, K.MISSING_MANIFEST))
_MODULE_WORDINGS = tuple(
    row for row in WORDINGS if row.kind in _MODULE_KINDS or row.literal == "fatal error"
)
_SURE_KINDS = frozenset(
    (K.COMMAND_NOT_FOUND, K.MISSING_MODULE, K.MISSING_FILE, K.PERMISSION, K.UNKNOWN_OPTION,
     K.UNKNOWN_SUBCOMMAND, K.NOT_A_REPOSITORY, K.NO_UPSTREAM, K.REJECTED, K.MISSING_PACKAGE,
     K.MANAGED_ENVIRONMENT, K.WRONG_VERSION, K.MISSING_TARGET, K.CONNECTION)
)  # fmt: skip
_PROGRAM_ERROR = re.compile(r"(?m)^(?:error|fatal)\b[: ]")
_PYTHON_ERROR = re.compile(r"Traceback \(most recent call last\)|^\w+Error: ", re.MULTILINE)
_NPM_ERROR = re.compile(r"(?im)^npm (?:err!|error)")
_DOMAINS = {
    "git": re.compile(r"(?m)^(?:fatal|error|CONFLICT|hint)\b"),
    "npm": _NPM_ERROR,
    "npx": _NPM_ERROR,
    "cargo": re.compile(r"(?m)^error(?:\[E\d+\])?: "),
    "make": re.compile(r"(?m)^make(?:\[\d+\])?: "),
    "pip": re.compile(r"(?m)^ERROR: |^error: "),
    "pip3": re.compile(r"(?m)^ERROR: |^error: "),
    "python": _PYTHON_ERROR,
    "python3": _PYTHON_ERROR,
    "apt": re.compile(r"(?m)^E: "),
    "apt-get": re.compile(r"(?m)^E: "),
    "docker": re.compile(
        r"(?m)^(?:Error response from daemon|Cannot connect to the Docker|docker)"
    ),
    "nginx": re.compile(r"(?m)^nginx: "),
    "terraform": re.compile(r"(?m)^.{0,4}Error: "),
    "kubectl": re.compile(r"(?m)^(?:error|Error from server)"),
}
"""How the errors of tools that do not say their name begin."""


def _is_answer(
    run: CommandRun, line: CommandLine, index: int, part: Invocation, output: _Output
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
    if status in codes and not _complains(part, output):
        return True
    return part.name == "git" and "nothing to commit" in output.lowered


_ASKING_WRAPPERS = frozenset((("command", ("-v",)), ("command", ("-V",))))


def _complains(part: Invocation, output: _Output) -> bool:
    """Whether the program itself reports an error, beyond its exit code."""
    label = f"{part.name.lower()}: "
    return output.lowered.startswith(label) or f"\n{label}" in output.lowered


UNSEEN_KINDS = {126: K.NOT_EXECUTABLE, 127: K.COMMAND_NOT_FOUND}
"""What a shell's own exit codes say where nobody could see what it wrote."""


def _kind_of_exit(run: CommandRun, output: _Output) -> FailureKind | None:
    """Return the kind that the exit code alone decides."""
    if run.exit == TIME_LIMIT or _HARNESS_LIMIT.search(output.text[:400]):
        return K.HARNESS_LIMIT
    if run.exit == KILLED or run.signal == KILLED - 128:
        return K.OUT_OF_MEMORY if "out of memory" in output.lowered else K.CRASH
    if run.exit in ABORTED and "heap out of memory" not in output.lowered:
        return K.CRASH
    return None


def _cause_in_words(run: CommandRun, part: Invocation, index: int, output: _Output) -> _Cause:
    """Return the cause that the program's words tell; the exit code's kind where they do not."""
    for wordings in _readings(part, output):
        for wording, named, message in output.find(wordings):
            if wording.kind is K.UNKNOWN_OPTION:
                named = tuple(_as_option(name, part) for name in named)
            return _Cause(index, wording.kind, named, wording.domain, message)
    return _Cause(index, _kind_without_words(run, part), (), "", output.error_line())


def _kind_without_words(run: CommandRun, part: Invocation) -> FailureKind:
    kind = EXIT_KINDS.get((part.name, run.exit or 0))
    if kind is None and part.name in LINTERS and run.exit == 1:
        kind = K.LINT_FAILURE
    return kind or (K.USAGE if run.exit == USAGE else K.OTHER)


def _readings(part: Invocation, output: _Output) -> Iterator[Sequence[Wording]]:
    """Yield the tables in the order in which this program's output is to be read."""
    if _is_test_run(part) and not _COLLECTION.search(output.text):
        yield _TEST_WORDINGS
    if part.name in COMPILERS:
        yield _MODULE_WORDINGS
        if part.subcommand not in _NOT_COMPILING:
            yield _BEFORE_COMPILING
            yield _COMPILE_WORDINGS
    yield WORDINGS


_NOT_COMPILING = frozenset(("add", "install", "mod", "mod tidy", "get", "new", "init", "publish"))
_BEFORE_COMPILING = tuple(
    row
    for row in WORDINGS
    if row.kind in (K.UNKNOWN_SUBCOMMAND, K.UNKNOWN_OPTION, K.MANAGED_ENVIRONMENT, K.LOCKFILE,
                    K.MISSING_PACKAGE, K.WRONG_VERSION, K.DISK_FULL)
)  # fmt: skip


def _is_test_run(part: Invocation) -> bool:
    return (
        part.name in TEST_RUNNERS
        or part.subcommand in TEST_SUBCOMMANDS
        or (part.name == "make" and part.words[:1] in (("test",), ("check",)))
    )


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
    shown = set(re.findall(r"[^\s'\"(),;]+", message[:_LINE_MAX]))
    shown |= {word.rstrip(":.") for word in shown}
    return tuple(dict.fromkeys(w for w in part.words if w in shown and len(w) > 1))[:4]


def _masked_cause(run: CommandRun, line: CommandLine) -> _Cause | None:
    """Return what went wrong in a part whose exit code the line hides."""
    if not run.tail or len(line.segments) < 2:
        return None
    hidden = _hidden_segments(run, line)
    if not hidden:
        return None
    lowered = run.tail.lower()
    if not any(mark in lowered for mark in _MASKABLE):
        return None
    output = _Output(run.tail)
    parts = invocations(line)
    said = _shell_said(output, line, parts)
    if said is not None and said.segment in hidden:
        return said
    return _masked_in_words(run, parts, hidden, output)


def _masked_in_words(
    run: CommandRun, parts: Sequence[Invocation], hidden: Sequence[int], output: _Output
) -> _Cause | None:
    """Return the error of a hidden part, where a line of it begins as this program's errors do."""
    for index in hidden:
        if _blame(parts[index], output) == 0:
            continue
        cause = _cause_in_words(run, parts[index], index, output)
        if cause.kind in _SURE_KINDS or cause.kind in (K.TEST_FAILURE, K.COMPILE_ERROR):
            return cause
    return None


def _hidden_segments(run: CommandRun, line: CommandLine) -> list[int]:
    """Return the segments whose exit code does not show in the line's."""
    last = _start_of_last_list(line)
    hidden = list(range(last))
    for pipeline in _pipelines(line):
        known = len(run.pipestatus) == len(pipeline) > 1 and not any(run.pipestatus)
        if pipeline[0] >= last and not known:
            hidden += pipeline[:-1]
    for index, operator in enumerate(line.operators):
        if operator.text == "||" and index < len(line.segments) and index not in hidden:
            hidden.append(index)
    return hidden
