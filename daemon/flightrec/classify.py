"""Which runs went wrong *as a command*, and how: a table of kinds with the mechanisms that tell.

The exit code and the program decide before words do: words in a successful output never make a
failure.
"""

import enum
import re
from dataclasses import dataclass

from flightrec.ingest import CommandRun
from flightrec.shell_words import CommandLine


class FailureKind(enum.StrEnum):
    """What went wrong; the value is the text that hints show."""

    COMMAND_NOT_FOUND = "command not found"
    UNKNOWN_SUBCOMMAND = "unknown subcommand"
    UNKNOWN_OPTION = "unknown option"
    USAGE = "usage"
    ARGUMENT_COUNT = "wrong argument count"
    SYNTAX = "syntax error"
    PERMISSION = "permission denied"
    NOT_EXECUTABLE = "not executable"
    MISSING_FILE = "no such file"
    IS_A_DIRECTORY = "is a directory"
    NOT_A_DIRECTORY = "not a directory"
    ALREADY_EXISTS = "already exists"
    MISSING_MODULE = "missing module"
    MISSING_PACKAGE = "missing package"
    MISSING_LIBRARY = "missing library"
    MISSING_TARGET = "no such target"
    MISSING_VARIABLE = "missing environment variable"
    MANAGED_ENVIRONMENT = "externally managed environment"
    NOT_A_REPOSITORY = "not a repository"
    NO_UPSTREAM = "no upstream"
    UNKNOWN_REVISION = "unknown revision"
    NOTHING_STAGED = "nothing staged"
    NO_IDENTITY = "identity unknown"
    CONFLICT = "conflict"
    REJECTED = "rejected"
    LOCKED = "locked"
    PORT_IN_USE = "port in use"
    NOT_RUNNING = "service not running"
    CONNECTION = "connection failed"
    DNS = "name not resolved"
    TLS = "TLS failure"
    TIMEOUT = "timeout"
    RATE_LIMIT = "rate limit"
    AUTHENTICATION = "authentication failed"
    API_KEY = "API key missing"
    BLOCKED = "blocked by the site"
    EMPTY_RESULT = "empty result"
    MISSING_MODEL = "missing model"
    DISK_FULL = "disk full"
    OUT_OF_MEMORY = "out of memory"
    CRASH = "crash"
    WRONG_VERSION = "wrong version"
    INVALID_VALUE = "invalid value"
    REFUSED = "refused without confirmation"
    TEST_FAILURE = "test failure"
    COMPILE_ERROR = "compile error"
    LINT_FAILURE = "lint failure"
    HARNESS_LIMIT = "harness time limit"
    OTHER = "failed"


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that went wrong as a command.

    ``segment`` is the index in ``line.segments`` of the part that failed. ``signature`` is stable
    over paths, numbers, versions and languages. ``named`` is what the error names: the program,
    option, module or file. ``masked`` tells that the line's exit was 0 all the same (``| tail``,
    ``|| true``). A failure that is not ``teachable`` is an outcome of work: it is counted, and no
    recovery is looked for.
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


_NOT_FOUND = re.compile(r"not found|No such file", re.IGNORECASE)


def classify(run: CommandRun, line: CommandLine) -> Failure | None:
    """Return how this run failed, or None where it did not fail as a command."""
    if run.exit in (None, 0) or not line.segments:
        return None
    segment = line.segments[-1]
    kind = FailureKind.OTHER
    if run.exit == 127:
        kind = FailureKind.COMMAND_NOT_FOUND
    elif run.exit == 126:
        kind = FailureKind.NOT_EXECUTABLE
    return Failure(
        run=run,
        line=line,
        segment=len(line.segments) - 1,
        kind=kind,
        program=segment.program,
        subcommand="",
        signature=f"{kind}|{segment.program}",
        teachable=True,
        named=(segment.program,) if kind is not FailureKind.OTHER else (),
        masked=False,
    )
