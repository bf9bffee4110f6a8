"""Which files of which coding agent get our hooks: a table.

Each row was tried with the real client, but for Cursor's, which is by its documents.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from flightrec import agent_folders
from flightrec.agent_folders import Folder
from flightrec.hook_parts import Default, HookEvent, Hooks, Part, Variables


class Syntax(enum.Enum):
    """How a file is written."""

    JSON = "json"
    JSON_WITH_COMMENTS = "jsonc"
    TOML = "toml"
    PLUGIN = "plugin"  # a program, all of it ours


@dataclass(frozen=True, slots=True)
class HookFile:
    """A file below the agent's folder; ``project_file`` below a checkout, empty where none will do.

    A ``shared`` project file is one that git usually tracks. ``parts`` are in no order.
    """

    file: str
    project_file: str = ""
    shared: bool = True
    syntax: Syntax = Syntax.JSON
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class HookClient:
    """An agent: its folder in the home, and the files in it.

    ``program`` is what starts the agent. ``shells`` tells how its shells come to be recorded,
    ``afterwards`` what the person still has to do.
    """

    name: str
    title: str
    program: str
    folder: Folder
    files: tuple[HookFile, ...]
    shells: str = ""
    afterwards: str = ""


def _hooks(
    names: Iterable[str], matcher: str = "", tool_events: Iterable[str] = ()
) -> tuple[HookEvent, ...]:
    tools = set(tool_events)
    return tuple(HookEvent(name, matcher if name in tools else "") for name in names)


_TOOL_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
_CLAUDE_EVENTS = ("SessionStart", "UserPromptSubmit", *_TOOL_EVENTS, "SessionEnd")
_GEMINI_EVENTS = ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "SessionEnd")
_NAMED = (("type", "command"), ("name", "flightrec"))
_ALWAYS = "its shells are recorded wherever it is started"
_HOOKS_ONLY = "outside `flightrec run` its commands are known by its hooks alone"
_PLUGIN_SHELLS = "its shells are recorded wherever it is started, through the plugin"

CODEX_TRUST = (
    "Codex skips hooks silently until they are trusted: start codex, type /hooks and trust those of"
    " flightrec; or run: flightrec hook install codex --trust"
)

CLIENTS: tuple[HookClient, ...] = (
    HookClient(
        "claude",
        "Claude Code",
        "claude",
        agent_folders.CLAUDE,
        (
            HookFile(
                "settings.json",
                ".claude/settings.local.json",
                shared=False,
                parts=(
                    Hooks(_hooks(_CLAUDE_EVENTS, "Bash", _TOOL_EVENTS)),
                    Variables(("env",), ("BASH_ENV", "ZDOTDIR", "SHLVL")),
                ),
            ),
        ),
        shells=_ALWAYS,
    ),
    HookClient(
        "codex",
        "Codex",
        "codex",
        agent_folders.CODEX,
        (
            HookFile(
                "hooks.json",
                ".codex/hooks.json",
                parts=(
                    Hooks(
                        (
                            HookEvent("SessionStart"),
                            HookEvent("UserPromptSubmit"),
                            HookEvent("PreToolUse", "Bash"),
                            HookEvent("PostToolUse", "Bash"),
                            HookEvent("SessionEnd", limit=3),
                        )
                    ),
                ),
            ),
            HookFile(
                "config.toml",
                syntax=Syntax.TOML,
                parts=(
                    Variables(
                        ("shell_environment_policy", "set"),
                        ("BASH_ENV", "ZDOTDIR"),
                        shells_alone=True,
                    ),
                ),
            ),
        ),
        shells=_ALWAYS,
        afterwards=CODEX_TRUST,
    ),
    HookClient(
        "gemini",
        "Gemini CLI",
        "gemini",
        agent_folders.GEMINI,
        (
            HookFile(
                "settings.json",
                ".gemini/settings.json",
                syntax=Syntax.JSON_WITH_COMMENTS,
                parts=(
                    Hooks(
                        _hooks(_GEMINI_EVENTS, "run_shell_command", ("BeforeTool", "AfterTool")),
                        unit=1000,
                        more=_NAMED,
                    ),
                ),
            ),
        ),
        shells=_HOOKS_ONLY,
    ),
    HookClient(
        "qwen",
        "Qwen Code",
        "qwen",
        agent_folders.QWEN,
        (
            HookFile(
                "settings.json",
                ".qwen/settings.json",
                syntax=Syntax.JSON_WITH_COMMENTS,
                parts=(
                    Hooks(
                        _hooks(_CLAUDE_EVENTS, "run_shell_command", _TOOL_EVENTS),
                        unit=1000,
                        more=_NAMED,
                    ),
                ),
            ),
        ),
        shells=_HOOKS_ONLY,
    ),
    HookClient(
        "opencode",
        "opencode",
        "opencode",
        agent_folders.OPENCODE,
        (HookFile("plugins/flightrec.js", ".opencode/plugins/flightrec.js", syntax=Syntax.PLUGIN),),
        shells=_PLUGIN_SHELLS,
    ),
    HookClient(
        "copilot",
        "Copilot CLI",
        "copilot",
        agent_folders.COPILOT,
        (
            HookFile(
                "hooks/flightrec.json",
                parts=(
                    Default("version", value=1),
                    Hooks(
                        _hooks(
                            (
                                "sessionStart",
                                "userPromptSubmitted",
                                "preToolUse",
                                "postToolUse",
                                "sessionEnd",
                            )
                        ),
                        nested=False,
                        command="bash",
                        timeout="timeoutSec",
                    ),
                ),
            ),
            HookFile(
                "settings.json",
                syntax=Syntax.JSON_WITH_COMMENTS,
                parts=(Default("bashEnv", value=True),),
            ),
        ),
        shells="its shells are recorded where it finds BASH_ENV: start it with `flightrec run`",
    ),
    HookClient(
        "droid",
        "Factory droid",
        "droid",
        agent_folders.DROID,
        (
            HookFile(
                "settings.json",
                ".factory/settings.json",
                syntax=Syntax.JSON_WITH_COMMENTS,
                parts=(
                    Hooks(
                        _hooks(
                            (
                                "SessionStart",
                                "UserPromptSubmit",
                                "PreToolUse",
                                "PostToolUse",
                                "SessionEnd",
                            ),
                            "Execute",
                            _TOOL_EVENTS,
                        )
                    ),
                ),
            ),
        ),
        shells=_HOOKS_ONLY + ", and it tells nothing of failed ones",
    ),
    HookClient(
        "cursor",
        "Cursor",
        "cursor-agent",
        agent_folders.CURSOR,
        (
            HookFile(
                "hooks.json",
                ".cursor/hooks.json",
                parts=(
                    Default("version", value=1),
                    Hooks(
                        _hooks(
                            (
                                "sessionStart",
                                "beforeSubmitPrompt",
                                "beforeShellExecution",
                                "afterShellExecution",
                                "sessionEnd",
                            )
                        ),
                        nested=False,
                        timeout="",
                        more=(),
                    ),
                ),
            ),
        ),
        shells=_HOOKS_ONLY,
    ),
    HookClient(
        "pi",
        "pi",
        "pi",
        agent_folders.PI,
        (HookFile("extensions/flightrec.js", ".pi/extensions/flightrec.js", syntax=Syntax.PLUGIN),),
        shells=_PLUGIN_SHELLS,
    ),
)

NAMES = tuple(client.name for client in CLIENTS)


def find_client(name: str) -> HookClient:
    """Return the row of an agent."""
    return next(client for client in CLIENTS if client.name == name)
