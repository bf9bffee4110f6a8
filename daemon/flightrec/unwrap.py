"""An agent's shell line → the command that its model asked for.

Agents hand a shell more than the model's words: they restore a snapshot, guard the options, report
the directory. A rule learned from such a line would match nothing a second time, and its hint would
show a text that the model never wrote. The tables say what each of them adds; a line of no known
shape is taken as it stands.
"""

import re
from collections.abc import Mapping

from flightrec import shell_words

SILENT_PREFIXES = (
    "SNAPSHOT_FILE=",  # Claude Code: snapshot of the login shell
    'if [ -z "${BASH_ENV-}" ] && [ -n "${HOME-}" ]',  # Codex: snapshot of the login shell
    'if [[ -n "${ZDOTDIR-}" ]]; then\n  rc="$ZDOTDIR/.zshrc"',  # Codex: the same, of zsh
    'set -e; . "',  # Codex: tries the snapshot
    "printf '%s' mistralai-vibe-login-env-",  # Vibe: environment of the login shell
    "printf %s '__copilot_login_env_snapshot_",  # Copilot CLI: the same
    ": flightrec;",  # a hook of ours, which some agents run in a shell from PATH
)
"""An agent's own work. Nothing that such a shell runs was asked for by a model."""

OUTER_PREFIXES = (
    "__CODEX_SNAPSHOT_",  # Codex: restores its snapshot, then becomes the shell of the command
    "owner_is_alive() {",  # droid: supervisor
    "{ echo 1000 >/proc/self/oom_score_adj; }",  # Vibe: becomes the shell of the command
    "{ socat TCP",  # Claude Code's sandbox: proxies around the command
)
"""An agent's shell that starts another one, which is the model's: that one is recorded."""

_SANDBOX = re.compile(r"/\S+ -c '\{ socat TCP")
"""The same of Claude Code, by the full path of the person's shell, or of what stands in for it."""

SILENT_LINES = frozenset(("env",))
"""Claude Code asks the login shell for its environment so."""

SHELL_AGENTS = frozenset(
    ("claude", "codex", "gemini", "qwen", "opencode", "pi", "cline", "cn", "droid", "vibe")
)
"""Agents that always run a model's commands in a shell that we see.

What such an agent starts without one, ``git ls-files`` for its own ends, no model asked for.
"""

OWN_TOOLS: Mapping[str, re.Pattern[str]] = {
    "aider": re.compile(r"git (version|config --get user\.(name|email)|check-ignore \.aider)\Z"),
    "copilot": re.compile(r"git (--version\Z|--no-optional-locks )"),
    "gptme": re.compile(r"git (-c core\.fsmonitor= |-C \S+ rev-parse --abbrev-ref HEAD\Z)"),
}
"""How other agents look at a repository for themselves, before and after what a model asks for."""

_EVAL_MARKS = ("shell-snapshots/", "mistralai-vibe-login-shell-")
"""Paths in the lines of Claude Code and Vibe, whose command is the argument of an ``eval``."""

_GEMINI = re.compile(
    r"\A(?:shopt -u [a-z ]+; )?_bgpids_file=\S+\n\(\n  trap '[^']*' EXIT\n"
    r"(?P<command>.*)\n\)\n__code=\$\?\nexit \$__code\s*\Z",
    re.DOTALL,
)
"""Gemini CLI wraps the command in a subshell that reports its background jobs."""

_DROID = re.compile(
    r"\Aexec nohup bash -c '(?P<command>.*)' > '[^'\n]*/droid-bg-\d+\.out' 2>&1\s*\Z", re.DOTALL
)
"""droid starts what is to run in the background so."""

_QUOTE = "'\\''"
"""A quote within quotes."""


def is_own_tool(agent: str, line: str) -> bool:
    """Whether an agent started this program, which no shell was seen to run, of its own accord."""
    if agent in SHELL_AGENTS:
        return True
    own = OWN_TOOLS.get(agent)
    return own is not None and own.match(line) is not None


def unwrap(line: str) -> str | None:
    """Return the model's command in a line that an agent gave a shell.

    None for a line that is the agent's own work: there is nothing to record.
    """
    text = line.lstrip()
    if text in SILENT_LINES or text.startswith(SILENT_PREFIXES + OUTER_PREFIXES):
        return None
    if _SANDBOX.match(text):
        return None
    if any(mark in text for mark in _EVAL_MARKS):
        return _last_eval(text) or line
    droid = _DROID.match(line)
    if droid:
        return droid["command"].replace(_QUOTE, "'")
    gemini = _GEMINI.match(line)
    return gemini["command"] if gemini else line


def _last_eval(line: str) -> str:
    """Return the argument of the line's last ``eval``, unquoted; empty where there is none."""
    for segment in reversed(shell_words.parse(line).segments):
        if segment.program == "eval" and segment.arguments:
            return segment.arguments[0].text
    return ""
