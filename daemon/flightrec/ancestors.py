"""Which agent a shell runs below: by the programs of the processes above it.

This is for shells that ``flightrec run`` did not start and that no agent has marked: many set no
variable of their own. Only the agent's name is kept of what is seen there.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

ANCESTORS_MAX = 32

PROGRAMS = {
    "aider": "aider",
    "amp": "amp",
    "auggie": "auggie",
    "claude": "claude",
    "cline": "cline",
    "cn": "continue",
    "codex": "codex",
    "copilot": "copilot",
    "crush": "crush",
    "cursor-agent": "cursor",
    "droid": "droid",
    "gemini": "gemini",
    "goose": "goose",
    "gptme": "gptme",
    "kilo": "kilo",
    "mini": "mini-swe-agent",
    "opencode": "opencode",
    "pi": "pi",
    "qwen": "qwen",
    "vibe": "vibe",
}
"""A program's or script's name → the agent. An editor with a terminal in it is none: there a person
types."""

PACKAGES = {
    "@anthropic-ai/claude-code": "claude",
    "@continuedev/cli": "continue",
    "@github/copilot": "copilot",
    "@google/gemini-cli": "gemini",
    "@mariozechner/pi-coding-agent": "pi",
    "@openai/codex": "codex",
    "@qwen-code/qwen-code": "qwen",
    "cline": "cline",
    "droid": "droid",
    "opencode-ai": "opencode",
}
"""A package below ``node_modules`` → the agent: scripts in it have names such as ``index.js``."""

_RUNTIME = re.compile(r"(?:node|nodejs|bun|deno|python(?:3(?:\.\d+)?)?|pypy3?|uv|uvx|npx|pipx|env)")
_SUFFIX = re.compile(r"\.(?:[cm]?js|py|exe)\Z")


def agent_above(pid: int) -> str:
    """Return the agent that is nearest above a process of mine; empty where there is none."""
    return next((agent for words in _above(pid) if (agent := agent_of(words))), "")


def agent_of(words: Sequence[str]) -> str:
    """Return which agent a process with these words is; empty for any other program."""
    if not words:
        return ""
    program = Path(words[0]).name
    if program in PROGRAMS:
        return PROGRAMS[program]
    if not _RUNTIME.fullmatch(program):
        return ""
    script = next((w for w in words[1:] if not w.startswith("-") and w not in ("run", "x")), "")
    return _agent_of_script(script)


def _agent_of_script(word: str) -> str:
    _, _, package = word.rpartition("/node_modules/")
    for name, agent in PACKAGES.items():
        if package.startswith(f"{name}/"):
            return agent
    return PROGRAMS.get(_SUFFIX.sub("", Path(word).name), "")


def _above(pid: int) -> Iterator[list[str]]:
    """Yield the words of each process above this one, the nearest first, as long as they are mine.

    A pid is the word of whoever sent it: of another namespace, or long gone.
    """
    import psutil  # noqa: PLC0415 - slow to import, and only the daemon needs it

    me = os.geteuid()
    try:
        process = psutil.Process(pid).parent()
        for _ in range(ANCESTORS_MAX):
            if process is None or process.uids().effective != me:
                return
            yield process.cmdline()
            process = process.parent()
    except (psutil.Error, OSError, ValueError, OverflowError):
        return
