"""One simple command as a person means it: which tool, which subcommand, through which runner."""

import itertools
import re
from dataclasses import dataclass
from functools import lru_cache

from flightrec.shell_words import CommandLine, SimpleCommand

PYTHON = re.compile(r"^(?:python|pypy)(?:\d+(?:\.\d+)*)?$")
_ASSIGNMENT = re.compile(r"^([A-Za-z_]\w*)\+?=")


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, for tables that are read better without commas."""
    return frozenset(text.split())


def base_name(word: str) -> str:
    """Return a word of a command less the folders before it; it need not be a path of this host."""
    return word.rpartition("/")[2]


_RUNNERS: dict[str, tuple[str, ...]] = {
    "bunx": ("",),
    "npx": ("",),
    "pnpx": ("",),
    "uvx": ("",),
    "bun": ("x",),
    "bundle": ("exec",),
    "hatch": ("run",),
    "npm": ("exec", "x"),
    "pdm": ("run",),
    "pipenv": ("run",),
    "pipx": ("run",),
    "pnpm": ("exec", "dlx"),
    "poetry": ("run",),
    "rye": ("run",),
    "uv": ("run",),
    "yarn": ("exec", "dlx"),
}
"""Programs whose next word (after this one) is the tool that really runs."""

_VALUED: dict[str, frozenset[str]] = {
    "aws": frozenset(("--profile", "--region", "--output", "--endpoint-url")),
    "cargo": frozenset(("--manifest-path", "-Z", "--config", "-C")),
    "docker": word_set(
        "-H --host -c --context -l --log-level --config -f --file -p --project-name --profile"
        " --env-file --project-directory"
    ),
    "gcloud": frozenset(("--project", "--account")),
    "gh": frozenset(("-R", "--repo")),
    "git": frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace")),
    "go": frozenset(("-C",)),
    "helm": frozenset(("-n", "--namespace", "--kube-context", "--kubeconfig")),
    "kubectl": frozenset(("-n", "--namespace", "--context", "--kubeconfig", "-s", "--server")),
    "gradle": frozenset(("-p", "--project-dir", "-b", "--build-file")),
    "hg": frozenset(("-R", "--repository", "--cwd")),
    "mvn": frozenset(("-f", "--file", "-s", "--settings", "-pl", "--projects", "-P", "-rf")),
    "npm": frozenset(("--prefix", "-C", "-w", "--workspace")),
    "pnpm": frozenset(("--dir", "-C", "--filter", "-F")),
    "systemctl": frozenset(("-H", "-M", "-n", "-o", "-t", "--type")),
    "terraform": frozenset(),
    "uv": frozenset(("--directory", "--project", "-p", "--python")),
    "yarn": frozenset(("--cwd",)),
    "adb": frozenset(("-s", "-P", "-H", "-L")),
}
"""Options before a subcommand that take the next word."""

_TWO_LEVELS: dict[str, frozenset[str]] = {
    "docker": word_set(
        "builder buildx compose container context image manifest network node plugin secret service"
        " stack swarm system trust volume"
    ),
    "podman": word_set("compose container image machine network pod system volume"),
    "git": word_set("bisect lfs notes remote stash submodule worktree"),
    "npm": word_set("run run-script config cache"),
    "pnpm": word_set("run store"),
    "yarn": word_set("run workspace global"),
    "bun": frozenset(("run",)),
    "deno": frozenset(("task",)),
    "composer": frozenset(("run-script",)),
    "uv": word_set("pip tool python self"),
    "poetry": word_set("env self cache source"),
    "conda": frozenset(("env",)),
    "go": word_set("mod work tool"),
    "helm": word_set("repo plugin dependency"),
    "kubectl": word_set("config rollout create"),
    "terraform": word_set("state workspace providers"),
    "rustup": word_set("toolchain target component default override"),
    "brew": frozenset(("services",)),
    "gh": word_set("auth pr issue repo run release workflow gist api secret"),
    "aws": word_set("s3 ec2 sts iam ecr eks sso configure lambda s3api ssm"),
    "az": word_set("group vm account aks acr provider storage network webapp"),
    "gcloud": word_set("auth config compute container projects run iam services"),
    "ip": frozenset(),
}
"""Subcommands that are only the first half of what is meant."""

_ONE_LEVEL = word_set(
    "adb apk apt apt-cache apt-get bazel bundle cargo composer dnf dotnet flutter gem gradle"
    " heroku hg mvn mysqladmin openssl pacman pip pip3 pipenv pipx pyenv rails rake rbenv rye snap"
    " svn systemctl tmux vagrant yum zypper nvm mise asdf minikube kind ollama pulumi nix-env"
    " react-native ng vercel firebase wrangler pdm hatch tsuru"
)

_INLINE: dict[str, tuple[str, ...]] = {
    "awk": (),
    "bash": ("-c", "-lc", "-ic"),
    "bun": ("-e", "--eval", "-p"),
    "dash": ("-c",),
    "deno": ("eval",),
    "duckdb": ("-c",),
    "ksh": ("-c",),
    "lua": ("-e",),
    "mongo": ("--eval",),
    "mongosh": ("--eval",),
    "mysql": ("-e", "--execute"),
    "node": ("-e", "--eval", "-p", "--print"),
    "osascript": ("-e",),
    "perl": ("-e", "-E", "-ne", "-pe", "-le"),
    "php": ("-r",),
    "psql": ("-c", "--command"),
    "R": ("-e",),
    "Rscript": ("-e",),
    "ruby": ("-e", "-ne", "-pe"),
    "sh": ("-c",),
    "zsh": ("-c",),
}

INFORMATION_WORDS = frozenset(
    ("--help", "-h", "-?", "help", "--version", "-V", "version", "--usage")
)
INFORMATION_PROGRAMS = word_set("apropos help info man tldr type whatis whereis which where")


@dataclass(frozen=True, slots=True)
class Invocation:
    """A segment, understood.

    ``program`` is the first word as written, ``name`` the tool that runs in the end without its
    path (``pytest`` in ``python -m pytest``), ``runner`` the words before it. ``words`` are the
    tool's arguments, ``subcommand`` the leading ones that say what it is to do. ``wrappers`` are
    ``sudo`` and the like, ``variables`` what is assigned for this command alone. ``code`` is inline
    program text (``-c``, here-document), which is the person's work and never a correction.
    """

    program: str
    name: str
    runner: tuple[str, ...]
    subcommand: str
    words: tuple[str, ...]
    wrappers: tuple[str, ...]
    variables: tuple[str, ...]
    code: str

    @property
    def operands(self) -> tuple[str, ...]:
        """The words that are neither options nor the subcommand."""
        skip = self.subcommand.split()
        found = [word for word in self.words if not word.startswith("-")]
        return tuple(found[len(skip) :] if found[: len(skip)] == skip else found)

    @property
    def privileged(self) -> bool:
        """Whether it is to run as another user."""
        return any(base_name(word) in PRIVILEGE for word in self.wrappers)

    @property
    def asks_information(self) -> bool:
        """Whether it only asks a tool about itself (``--help``, ``--version``, ``which``)."""
        if self.name in INFORMATION_PROGRAMS:
            return True
        return bool(self.words) and (
            INFORMATION_WORDS.issuperset(self.words)
            or not {"--help", "help"}.isdisjoint(self.words)
            or (self.words[0] == "help" and bool(self.subcommand))
        )


PRIVILEGE = frozenset(("sudo", "doas", "pkexec", "su", "run0", "gosu"))


def invocations(line: CommandLine) -> tuple[Invocation, ...]:
    """Return what each segment of a line means; parallel to ``line.segments``."""
    return tuple(_understand(segment) for segment in line.segments)


@lru_cache(maxsize=256)
def _understand(segment: SimpleCommand) -> Invocation:
    program = segment.program
    words = tuple(word.text for word in segment.arguments)
    runner, name, words = _set_runner_aside(program, words)
    wrappers = tuple(word.text for word in segment.words[: segment.wrappers])
    assigned = [*(word.text for word in segment.assignments), *wrappers]
    variables = tuple(match[1] for text in assigned if (match := _ASSIGNMENT.match(text)))
    if program.startswith("$(") and "env" in wrappers and words:
        # env $(cat .env) command
        variables = (*variables, program)
        runner, name, words = _set_runner_aside(words[0], words[1:])
        program = segment.arguments[0].text
    return Invocation(
        program=program,
        name=name,
        runner=runner,
        subcommand=_subcommand(name, words),
        words=words,
        wrappers=tuple(word for word in wrappers if not _ASSIGNMENT.match(word)),
        variables=variables,
        code=_inline_code(name, words) + _bodies(segment),
    )


def _set_runner_aside(
    program: str, words: tuple[str, ...]
) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Return the runner's words, the tool's name and the tool's arguments."""
    name = base_name(program) or program
    if PYTHON.match(name) and len(words) > 1 and words[0] == "-m":
        return (program, "-m"), words[1], words[2:]
    for verb in _RUNNERS.get(name, ()):
        skipped = 0
        if verb:
            if not words or words[0] != verb:
                continue
            skipped = 1
        while skipped < len(words) and words[skipped].startswith("-"):
            skipped += 1
        if skipped < len(words):
            tool = base_name(words[skipped])
            if PYTHON.match(tool) and words[skipped + 1 : skipped + 2] == ("-m",):
                skipped += 2
                tool = words[skipped] if skipped < len(words) else tool
            return (program, *words[:skipped]), tool, words[skipped + 1 :]
    return (), name, words


def _subcommand(name: str, words: tuple[str, ...]) -> str:
    if name not in _ONE_LEVEL and name not in _TWO_LEVELS and name not in _VALUED:
        return ""
    valued = _VALUED.get(name, frozenset())
    position = 0
    while position < len(words) and words[position].startswith("-"):
        position += 2 if words[position] in valued else 1
    verb = "".join(words[position : position + 1])
    if verb not in _TWO_LEVELS.get(name, ()):
        return verb
    position += 1
    while position < len(words) and words[position] in valued:
        position += 2
    rest = "".join(words[position : position + 1])
    return f"{verb} {rest}" if rest and not rest.startswith("-") else verb


def _inline_code(name: str, words: tuple[str, ...]) -> str:
    flags = ("-c",) if PYTHON.match(name) else _INLINE.get(name, ())
    for flag, code in itertools.pairwise(words):
        if flag in flags:
            return code
    return ""


def _bodies(segment: SimpleCommand) -> str:
    return "".join(r.body or "" for r in segment.redirections)
