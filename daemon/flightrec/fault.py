"""Which part of a line failed: its pipelines and lists, and whom the output speaks against."""

import re
from collections.abc import Sequence

from flightrec.expected_status import FILTERS, NEVER_AT_FAULT, TEST_RUNNERS, TEST_SUBCOMMANDS
from flightrec.failed_output import FailedOutput
from flightrec.failure_kinds import K
from flightrec.failure_tables import WORDINGS, Table
from flightrec.ingest import CommandRun
from flightrec.invocation import Invocation, base_name
from flightrec.shell_words import CommandLine

_LIST_ENDS = frozenset((";", "&", "\n"))
_PIPES = frozenset(("|", "|&"))

TEST_WORDINGS = Table(row for row in WORDINGS if row.kind is K.TEST_FAILURE)
_PYTHON_ERROR = re.compile(r"Traceback \(most recent call last\)|^\w+Error: ", re.MULTILINE)
_NPM_ERROR = re.compile(r"(?im)^npm (?:err!|error)")
_DOMAINS = {
    "git": re.compile(r"(?m)^(?:fatal|error|CONFLICT|hint)\b"),
    "npm": _NPM_ERROR,
    "npx": _NPM_ERROR,
    "cargo": re.compile(r"(?m)^error(?:\[E\d+\])?: "),
    "make": re.compile(r"(?m)^make(?:\[\d+\])?: "),
    "pip": re.compile(r"(?m)^ERROR: |^error: |^hint: See PEP"),
    "pip3": re.compile(r"(?m)^ERROR: |^error: |^hint: See PEP"),
    "pytest": re.compile(r"(?m)^ERROR: |^=+ .{0,60}\bin [\d.]+s"),
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


_BUILTINS = frozenset(("cd", "export", "kill", "popd", "pushd", "source", "type", "unset"))


def find_fault(
    run: CommandRun, line: CommandLine, output: FailedOutput, parts: Sequence[Invocation]
) -> int:
    """Return the index of the segment that failed."""
    if len(parts) == 1:
        return 0
    by_status = _by_pipestatus(run, line)
    if by_status is not None:
        return by_status
    scores = [blame(part, output) for part in parts]
    best = max(scores)
    if best > 0:
        return max(index for index, score in enumerate(scores) if score == best)
    return last_worker(line, parts)


def segment_named(name: str, line: CommandLine, parts: Sequence[Invocation]) -> int | None:
    """Return the segment that would have run the program of this name."""
    for index, part in enumerate(parts):
        if name in (part.program, *part.wrappers):
            return index
    for index, segment in enumerate(line.segments):
        if any(word.text == name for word in segment.words):
            return index
    return None


def segment_mentioned(message: str, parts: Sequence[Invocation]) -> int | None:
    """Return the segment whose program's name an error line begins with."""
    for index, part in enumerate(parts):
        if part.name and message.startswith((f"{part.name}: ", f"{part.program}: ")):
            return index
    return None


def first_worker(parts: Sequence[Invocation]) -> int:
    """Return the first segment that could fail at all."""
    return next((i for i, p in enumerate(parts) if p.name not in NEVER_AT_FAULT), 0)


def last_worker(line: CommandLine, parts: Sequence[Invocation]) -> int:
    """Return the last segment of the last list that could have given the exit code."""
    first = start_of_last_list(line)
    for index in range(len(parts) - 1, first - 1, -1):
        if parts[index].name not in NEVER_AT_FAULT and not _only_passes_on(line, index):
            return index
    return len(parts) - 1


def _only_passes_on(line: CommandLine, index: int) -> bool:
    """Whether a segment shows what comes through a pipe: ``| tail -3``."""
    piped = 0 < index <= len(line.operators) and line.operators[index - 1].text in _PIPES
    return piped and line.segments[index].program in FILTERS


def hidden_segments(run: CommandRun, line: CommandLine) -> list[int]:
    """Return the segments whose exit code does not show in the line's."""
    last = start_of_last_list(line)
    hidden = list(range(last))
    for pipeline in _pipelines(line):
        known = len(run.pipestatus) == len(pipeline) > 1 and not any(run.pipestatus)
        if pipeline[0] >= last and not known:
            hidden += pipeline[:-1]
    for index, operator in enumerate(line.operators):
        if operator.text == "||" and index < len(line.segments) and index not in hidden:
            hidden.append(index)
    return hidden


def blame(part: Invocation, output: FailedOutput) -> int:
    """Return how much the output speaks for this part's failing; 0 where it says nothing."""
    if not part.name or part.name in NEVER_AT_FAULT:
        return 0
    name = part.name.lower()
    if name in _BUILTINS and f": {name}: " in output.lowered:  # bash: line 2: cd: x: No such file
        return 3
    for label in {name, base_name(part.program).lower()}:
        if output.holds_line_of(label):
            return 3
    if is_test_run(part) and any(True for _ in output.find(TEST_WORDINGS)):
        return 2
    domain = _DOMAINS.get(name)
    return 1 if domain is not None and domain.search(output.text) else 0


def is_test_run(part: Invocation) -> bool:
    """Whether a command runs tests."""
    return (
        part.name in TEST_RUNNERS
        or part.subcommand in TEST_SUBCOMMANDS
        or (part.name == "make" and part.words[:1] in (("test",), ("check",)))
    )


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


def start_of_last_list(line: CommandLine) -> int:
    """Return the first segment of what follows the last ``;``, ``&`` or newline."""
    for index in range(len(line.operators) - 1, -1, -1):
        if line.operators[index].text in _LIST_ENDS and index + 1 < len(line.segments):
            return index + 1
    return 0
