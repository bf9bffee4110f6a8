"""The kinds of failure, and for each whether there is anything to be learned from it."""

import enum


class FailureKind(enum.StrEnum):
    """What went wrong; the value is the text that hints show."""

    # the command line itself
    COMMAND_NOT_FOUND = "command not found"
    UNKNOWN_SUBCOMMAND = "unknown subcommand"
    UNKNOWN_OPTION = "unknown option"
    USAGE = "wrong usage"
    ARGUMENT_COUNT = "wrong argument count"
    INVALID_VALUE = "invalid value"
    SHELL_SYNTAX = "shell syntax or quoting"
    EXPRESSION_SYNTAX = "syntax of an expression"
    # files and rights
    MISSING_FILE = "no such file or directory"
    MISSING_MANIFEST = "no project file here"
    IS_A_DIRECTORY = "is a directory"
    NOT_A_DIRECTORY = "not a directory"
    NOT_EMPTY = "directory not empty"
    ALREADY_EXISTS = "already exists"
    WRONG_FORMAT = "wrong format"
    NOT_EXECUTABLE = "not executable"
    PERMISSION = "permission denied"
    RUNNING_AS_ROOT = "must not run as root"
    UNSAFE_OWNERSHIP = "dubious ownership"
    # what is missing around it
    MISSING_MODULE = "missing module"
    MISSING_PACKAGE = "no such package"
    MISSING_LIBRARY = "missing library"
    MISSING_TARGET = "does not exist"
    MISSING_VARIABLE = "missing environment variable"
    MISSING_MODEL = "missing model"
    API_KEY = "API key missing"
    NOT_INITIALISED = "not set up yet"
    MANAGED_ENVIRONMENT = "externally managed environment"
    DEPENDENCIES = "dependencies do not fit"
    LOCKFILE = "lock file missing or out of date"
    WRONG_VERSION = "wrong version"
    NO_TERMINAL = "needs a terminal"
    NO_DISPLAY = "needs a display"
    ENCODING = "encoding or locale"
    # version control
    NOT_A_REPOSITORY = "not a repository"
    NO_UPSTREAM = "no upstream"
    UNKNOWN_REVISION = "unknown revision"
    NOTHING_STAGED = "nothing staged"
    NO_IDENTITY = "identity unknown"
    UNCOMMITTED = "uncommitted changes"
    CONFLICT = "conflict"
    IN_PROGRESS = "another operation is in progress"
    REJECTED = "rejected by the other side"
    REFUSED = "refused without an option"
    # services and networks
    LOCKED = "locked or in use"
    PORT_IN_USE = "port in use"
    NOT_RUNNING = "service not running"
    CONNECTION = "connection failed"
    DNS = "name not resolved"
    TLS = "certificate or TLS"
    HOST_KEY = "host key unknown or changed"
    TIMEOUT = "timeout"
    RATE_LIMIT = "rate limit"
    AUTHENTICATION = "authentication failed"
    BLOCKED = "blocked by the site"
    HTTP_ERROR = "error from the server"
    # the machine
    DISK_FULL = "disk full"
    OUT_OF_MEMORY = "out of memory"
    CRASH = "crash"
    # outcomes of work
    EMPTY_RESULT = "empty result"
    TEST_FAILURE = "test failure"
    COMPILE_ERROR = "compile error"
    LINT_FAILURE = "lint failure"
    EXCEPTION = "error in the program"
    HARNESS_LIMIT = "harness time limit"
    OTHER = "failed"


K = FailureKind

UNTEACHABLE = frozenset(
    (
        K.CONFLICT,  # only a person can decide; --abort gives up
        K.TIMEOUT,
        K.RATE_LIMIT,
        K.BLOCKED,
        K.HTTP_ERROR,  # the world's answer, not the command's fault; a later 200 proves nothing
        K.CRASH,
        K.TEST_FAILURE,  # a red-green loop: what mended it was an edit
        K.COMPILE_ERROR,
        K.LINT_FAILURE,
        K.EXCEPTION,
        K.HARNESS_LIMIT,
    )
)
"""Outcomes of work: counted, and no recovery is looked for."""
