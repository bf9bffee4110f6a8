"""Which programs get a stand-in on an agent's PATH: development tools whose failures teach.

Left out on purpose: whatever runs as somebody else (sudo), what other programs find by its folder
(java, brew), what people talk to (ssh, editors), and what agents call without looking at the end
(cat, ls, grep, sed).
"""

import re
from collections.abc import Iterable

PROGRAMS_BY_FIELD: dict[str, tuple[str, ...]] = {
    "version control": ("git", "gh", "glab", "hg", "svn", "jj"),
    "Python": (
        "python", "python3", "pip", "pip3", "pytest", "py.test", "tox", "nox", "uv", "uvx",
        "poetry", "pdm", "hatch", "pipenv", "pipx", "ruff", "mypy", "pyright", "black", "flake8",
        "pylint", "isort", "pre-commit", "coverage", "django-admin", "alembic", "jupyter",
    ),
    "JavaScript": (
        "node", "npm", "npx", "pnpm", "yarn", "bun", "bunx", "deno", "tsc", "tsx", "ts-node",
        "eslint", "prettier", "jest", "vitest", "mocha", "vite", "webpack", "rollup", "next", "ng",
        "playwright", "cypress", "prisma", "corepack",
    ),
    "Rust": ("cargo", "rustc", "rustup", "rustfmt", "wasm-pack"),
    "Go": ("go", "gofmt", "golangci-lint"),
    "C and C++": (
        "make", "gmake", "cmake", "ctest", "ninja", "meson", "bazel", "gcc", "g++", "cc", "c++",
        "clang", "clang++", "clang-format", "clang-tidy", "conan", "autoreconf", "pkg-config",
    ),
    "Java": ("mvn", "gradle", "javac", "sbt"),
    "Ruby": ("ruby", "gem", "bundle", "rake", "rspec", "rails", "rubocop"),
    "PHP": ("php", "composer", "phpunit", "phpstan"),
    "other languages": (
        "dotnet", "mix", "elixir", "stack", "cabal", "ghc", "swift", "zig", "dart", "flutter",
    ),
    "containers": (
        "docker", "docker-compose", "podman", "kubectl", "helm", "terraform", "ansible",
        "ansible-playbook", "vagrant",
    ),
    "clouds": ("aws", "gcloud", "az", "flyctl", "heroku", "vercel", "wrangler"),
    "system": ("apt", "apt-get", "dnf", "yum", "pacman", "apk", "systemctl", "curl", "wget"),
    "data": ("jq", "yq", "sqlite3", "psql", "mysql", "redis-cli", "mongosh"),
    "tasks": ("just", "task"),
}  # fmt: skip

LOCATOR = "which"
"""Has a stand-in so that it does not find the others; it is never recorded."""

SHELLS = ("bash", "sh", "zsh", "dash")

RUNTIMES = frozenset(
    ("python", "python3", "node", "npx", "uvx", "uv", "bun", "bunx", "deno", "pipx", "ruby", "php")
)
"""Programs that agents are written for: given to ``flightrec run``, they are the agent."""

NEVER = frozenset(
    (*SHELLS, "ksh", "fish", "env", "sudo", "su", "doas", "pkexec", "flightrec", "flightrec-helper")
)
"""Names that no setting can add: privilege, ourselves, and what finds us again for ever."""

_NAME = re.compile(r"[\w@.+-]+", re.ASCII)


def shimmed_programs(also: Iterable[str] = (), never: Iterable[str] = ()) -> frozenset[str]:
    """Return the names that get a stand-in; ``also`` and ``never`` are the person's settings."""
    known = {name for names in PROGRAMS_BY_FIELD.values() for name in names}
    wanted = known | {name for name in also if _NAME.fullmatch(name)}
    return frozenset(wanted - NEVER - set(never))
