"""Exit codes that are answers, and exit codes that say by themselves what went wrong."""

from flightrec.failure_kinds import FailureKind, K

_ONE = frozenset((1,))

ANSWERS: dict[str, frozenset[int]] = {
    "[": _ONE,
    "[[": _ONE,
    "((": _ONE,
    "ack": _ONE,
    "ag": _ONE,
    "bzgrep": _ONE,
    "cmp": _ONE,
    "colordiff": _ONE,
    "command": frozenset((1, 127)),  # command -v
    "delta": _ONE,
    "diff": _ONE,
    "diff3": _ONE,
    "dpkg": _ONE,
    "dpkg-query": _ONE,
    "egrep": _ONE,
    "expr": _ONE,
    "false": _ONE,
    "fgrep": _ONE,
    "findmnt": _ONE,
    "fuser": _ONE,
    "getent": frozenset((2,)),
    "grep": _ONE,
    "hash": _ONE,
    "ifne": _ONE,
    "is-active": frozenset((3, 4)),
    "lsof": _ONE,
    "let": _ONE,
    "mountpoint": frozenset((1, 32)),
    "pg_isready": frozenset((1, 2, 3)),
    "pgrep": _ONE,
    "pidof": _ONE,
    "ping": frozenset((1,)),
    "pkill": _ONE,
    "read": _ONE,
    "rg": _ONE,
    "rpm": _ONE,
    "sdiff": _ONE,
    "test": _ONE,
    "type": _ONE,
    "ugrep": _ONE,
    "where": _ONE,
    "whereis": _ONE,
    "which": _ONE,
    "xzgrep": _ONE,
    "zgrep": _ONE,
    "zstdgrep": _ONE,
}
"""What these programs answer with: no match, not equal, not there, not running."""

ANSWERS_OF: dict[tuple[str, str], frozenset[int]] = {
    ("apt", "list"): _ONE,
    ("brew", "outdated"): _ONE,
    ("command", "-v"): frozenset((1, 127)),
    ("docker", "diff"): _ONE,
    ("git", "check-ignore"): _ONE,
    ("git", "diff"): _ONE,
    ("git", "diff-files"): _ONE,
    ("git", "diff-index"): _ONE,
    ("git", "grep"): _ONE,
    ("git", "merge-base"): _ONE,
    ("git", "merge-tree"): _ONE,
    ("git", "show-ref"): _ONE,
    ("git", "config"): _ONE,
    ("git", "symbolic-ref"): _ONE,
    ("helm", "diff"): frozenset((2,)),
    ("kubectl", "diff"): _ONE,
    ("npm", "audit"): _ONE,
    ("npm", "outdated"): _ONE,
    ("npm", "ls"): _ONE,
    ("pip", "show"): _ONE,
    ("pip3", "show"): _ONE,
    ("pnpm", "outdated"): _ONE,
    ("systemctl", "is-active"): frozenset((1, 3, 4)),
    ("systemctl", "is-enabled"): frozenset((1, 3, 4)),
    ("systemctl", "is-failed"): frozenset((1, 3, 4)),
    ("systemctl", "status"): frozenset((3,)),
    ("terraform", "plan"): frozenset((2,)),
    ("tmux", "has-session"): _ONE,
    ("yarn", "outdated"): _ONE,
}

EXIT_KINDS: dict[tuple[str, int], FailureKind] = {
    ("curl", 6): K.DNS,
    ("curl", 7): K.CONNECTION,
    ("curl", 22): K.HTTP_ERROR,
    ("curl", 28): K.TIMEOUT,
    ("curl", 35): K.TLS,
    ("curl", 51): K.TLS,
    ("curl", 52): K.CONNECTION,
    ("curl", 56): K.CONNECTION,
    ("curl", 60): K.TLS,
    ("curl", 67): K.AUTHENTICATION,
    ("git", 129): K.USAGE,
    ("nc", 1): K.CONNECTION,
    ("ncat", 1): K.CONNECTION,
    ("netcat", 1): K.CONNECTION,
    ("pytest", 1): K.TEST_FAILURE,
    ("pytest", 5): K.EMPTY_RESULT,
    ("py.test", 1): K.TEST_FAILURE,
    ("unittest", 1): K.TEST_FAILURE,
    ("wget", 4): K.CONNECTION,
    ("wget", 5): K.TLS,
    ("wget", 6): K.AUTHENTICATION,
    ("wget", 8): K.HTTP_ERROR,
}
"""Kinds that the exit code settles where the error's words do not say more."""

TEST_RUNNERS = frozenset(
    (
        "ava", "bats", "behave", "ctest", "cypress", "jasmine", "jest", "karma", "minitest",
        "mocha", "nextest", "nose2", "nosetests", "nox", "phpunit", "playwright", "prove",
        "py.test", "pytest", "rspec", "tap", "tox", "unittest", "vitest",
    )
)  # fmt: skip
TEST_SUBCOMMANDS = frozenset(
    ("check", "ct", "t", "test", "tests", "run test", "run tests", "verify")
)

COMPILERS = frozenset(
    (
        "babel", "c++", "cargo", "cc", "clang", "clang++", "cmake", "dart", "dotnet", "esbuild",
        "g++", "gcc", "gfortran", "ghc", "go", "gradle", "gradlew", "javac", "kotlinc", "make",
        "mvn", "mvnw", "ninja", "rollup", "rustc", "sass", "scalac", "swift", "swiftc", "tsc",
        "vite", "webpack", "zig",
    )
)  # fmt: skip

LINTERS = frozenset(
    (
        "ansible-lint", "bandit", "biome", "black", "clang-tidy", "codespell", "eslint", "flake8",
        "gofmt", "golangci-lint", "hadolint", "isort", "ktlint", "markdownlint", "mypy",
        "pre-commit", "prettier", "pycodestyle", "pydocstyle", "pylint", "pyright", "rubocop",
        "ruff", "rustfmt", "shellcheck", "shfmt", "standard", "stylelint", "tflint", "yamllint",
    )
)  # fmt: skip
"""With exit 1 these report what they found; that is their work."""

NEVER_AT_FAULT = frozenset(
    (":", "echo", "exit", "printf", "pwd", "return", "sleep", "true", "wait", "whoami", "date")
)
"""What fails in a chain is hardly ever one of these."""

FILTERS = frozenset(("cat", "head", "less", "more", "tail", "tee"))
"""What fails before a pipe into one of these is not its failure."""

FIRST_SIGNAL, LAST_SIGNAL = 130, 192
"""128 + n for signal n. SIGHUP is left out: 129 is also what git says to a wrong usage."""

TIME_LIMIT = 124
USAGE = 64
"""EX_USAGE of sysexits.h, whoever says it."""

KILLED = 137
ABORTED = frozenset((132, 134, 135, 136, 139))
"""Signals of a program that crashed: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV."""
