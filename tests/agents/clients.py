"""The agents that tests drive: a row each, and how each is told of the mock model alone.

A client is started in an environment of its own, with files in a throw-away home.
"""

import dataclasses
import enum
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agents.installs import Package

PROMPT = "Please do the task."
KEY = "no-key"


class Shell(enum.Enum):
    """How much can be seen of the shell that runs the commands."""

    SEEN = "every command"
    FED = "programs and failures"  # one shell for all, which reads its commands
    UNSEEN = "programs"  # /bin/sh, which reads no file of ours


@dataclass(frozen=True, slots=True)
class Setup:
    """What it takes to start a client: words after its program, variables, files in the home."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    before: tuple[tuple[str, ...], ...] = ()
    """Words of what is run first, once for each model's address."""


@dataclass(frozen=True, slots=True)
class Client:
    """An agent: ``name`` is ours for it, ``setup`` takes the model's address."""

    name: str
    title: str
    package: Package
    setup: Callable[[str], Setup]
    volatile: re.Pattern[str] | None = None
    """What a client adds to a result that is another each time."""
    shell: Shell = Shell.SEEN
    unsteady: bool = False
    """Whether results are another now and then, without flightrec too."""


def _npm(name: str, version: str, program: str) -> Package:
    return Package("npm", name, version, program)


def _pip(name: str, version: str, program: str, python: str = "") -> Package:
    return Package("PyPI", name, version, program, python)


def _claude(url: str) -> Setup:
    return Setup(
        ("-p", PROMPT, "--dangerously-skip-permissions"),
        {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )


def _codex(
    url: str, sandbox: tuple[str, ...] = ("--dangerously-bypass-approvals-and-sandbox",)
) -> Setup:
    config = f"""
model = "gpt-5.2-codex"
model_provider = "mock"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
"""
    return Setup(
        ("exec", "--skip-git-repo-check", *sandbox, PROMPT),
        {"OPENAI_API_KEY": KEY, "TMPDIR": "/var/tmp"},  # it keeps no helpers below that
        {".codex/config.toml": config},
    )


def _gemini(url: str) -> Setup:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    return Setup(
        ("--yolo", "-m", "gemini-2.5-pro", "-p", PROMPT),
        {
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        {".gemini/settings.json": json.dumps(settings)},
    )


def _opencode(url: str) -> Setup:
    model = {"name": "mock", "tool_call": True, "limit": {"context": 200_000, "output": 8000}}
    config = {
        "autoupdate": False,
        "share": "disabled",
        "permission": "allow",
        "model": "mock/mock",
        "small_model": "mock/mock",
        "provider": {
            "mock": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "mock",
                "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
                "models": {"mock": model},
            }
        },
    }
    return Setup(
        ("run", PROMPT),
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
        {
            ".config/opencode/opencode.json": json.dumps(config),
            ".config/opencode/.npmrc": "offline=true\n",  # else it waits for plugins' sake
        },
    )


def _pi(url: str) -> Setup:
    model = {
        "id": "mock",
        "name": "mock",
        "reasoning": False,
        "input": ["text"],
        "contextWindow": 100_000,
        "maxTokens": 1000,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    provider = {
        "baseUrl": f"{url}/v1",
        "api": "openai-completions",
        "apiKey": KEY,
        "models": [model],
    }
    return Setup(
        ("--provider", "mock", "--model", "mock", "-p", PROMPT),
        {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"},
        {".pi/agent/models.json": json.dumps({"providers": {"mock": provider}})},
    )


def _qwen(url: str) -> Setup:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"disableAutoUpdate": True},
    }
    return Setup(
        ("--yolo", "-p", PROMPT),
        {
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_MODEL": "mock",
        },
        {".qwen/settings.json": json.dumps(settings)},
    )


def _copilot(url: str) -> Setup:
    return Setup(
        ("-p", PROMPT, "--allow-all-tools", "--allow-all-paths", "--no-color", "--bash-env"),
        {
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_MODEL": "mock",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        },
    )


def _cline(url: str) -> Setup:
    return Setup(
        ("--auto-approve", "true", PROMPT),
        {"CLINE_TELEMETRY_DISABLED": "1", "CLINE_NO_AUTO_UPDATE": "1"},
        before=(("auth", "-p", "openai-compatible", "-k", KEY, "-b", f"{url}/v1", "-m", "mock"),),
    )


def _continue(url: str) -> Setup:
    config = f"""
name: mock
version: 0.0.1
schema: v1
models:
  - name: mock
    provider: openai
    model: mock
    apiBase: {url}/v1
    apiKey: {KEY}
    useLegacyCompletionsEndpoint: false
    roles: [chat]
    capabilities: [tool_use]
"""
    return Setup(
        ("--config", "../mock.yaml", "--auto", "-p", PROMPT),
        {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_DISABLE_UPDATE": "1"},
        {"mock.yaml": config},
    )


def _droid(url: str) -> Setup:
    model = {
        "model": "mock",
        "id": "custom:mock",
        "displayName": "mock",
        "baseUrl": f"{url}/v1",
        "apiKey": KEY,
        "provider": "generic-chat-completion-api",
        "maxOutputTokens": 8000,
    }
    settings = {"customModels": [model], "enableDroidShield": False}
    return Setup(
        ("exec", "--skip-permissions-unsafe", "-m", "custom:mock", PROMPT),
        {
            "FACTORY_API_KEY": KEY,
            "FACTORY_API_BASE_URL": url,
            "FACTORY_DISABLE_TELEMETRY": "1",
            "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false",
        },
        {".factory/settings.json": json.dumps(settings)},
    )


def _vibe(url: str) -> Setup:
    config = f"""
active_model = "mock"
enable_update_checks = false
enable_auto_update = false
enable_telemetry = false
[[providers]]
name = "mock"
api_base = "{url}/v1"
api_key_env_var = "MISTRAL_API_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "mock"
provider = "mock"
alias = "mock"
temperature = 0.2
input_price = 0.0
output_price = 0.0
"""
    return Setup(
        ("-p", PROMPT, "--trust", "--agent", "auto-approve"),
        {"MISTRAL_API_KEY": KEY},
        {".vibe/config.toml": config},
    )


def _mini(url: str) -> Setup:
    return Setup(
        ("-m", "openai/mock", "-t", PROMPT, "--yolo", "--exit-immediately"),
        {
            "OPENAI_API_KEY": KEY,
            "OPENAI_API_BASE": f"{url}/v1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_SILENT_STARTUP": "1",
        },
    )


def _gptme(url: str) -> Setup:
    return Setup(
        (
            *("--non-interactive", "--no-confirm", "--tool-format", "tool"),
            *("-m", "openai/gpt-4o", "-t", "shell", PROMPT),
        ),
        {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "GPTME_TELEMETRY": "0"},
    )


def _aider(url: str) -> Setup:
    quiet = ("--no-show-model-warnings", "--no-check-update", "--analytics-disable", "--no-pretty")
    return Setup(
        ("--model", "openai/mock", *quiet, "--yes-always", "--message", "/run git statsu"),
        {
            "OPENAI_API_KEY": KEY,
            "OPENAI_API_BASE": f"{url}/v1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
    )


_CODEX = re.compile(r"Chunk ID: \w+\nWall time: [\d.]+ seconds\n|Original token count: \d+\n")
_GEMINI = re.compile(r"\nProcess Group PGID: \d+")

CLIENTS: tuple[Client, ...] = (
    Client(
        "claude", "Claude Code", _npm("@anthropic-ai/claude-code", "2.1.332", "claude"), _claude
    ),
    Client("codex", "Codex", _npm("@openai/codex", "0.171.0", "codex"), _codex, _CODEX),
    Client(
        "gemini", "Gemini CLI", _npm("@google/gemini-cli", "0.61.0", "gemini"), _gemini, _GEMINI
    ),
    Client("opencode", "opencode", _npm("opencode-ai", "1.18.33", "opencode"), _opencode),
    Client("pi", "pi", _npm("@mariozechner/pi-coding-agent", "0.73.1", "pi"), _pi),
)
"""Driven by every test run, in the order of the README's table."""

MORE_CLIENTS: tuple[Client, ...] = (
    Client(
        "qwen", "Qwen Code", _npm("@qwen-code/qwen-code", "0.24.4", "qwen"), _qwen, unsteady=True
    ),
    Client("copilot", "Copilot CLI", _npm("@github/copilot", "1.0.102", "copilot"), _copilot),
    Client("cline", "Cline", _npm("cline", "3.0.65", "cline"), _cline),
    Client("continue", "Continue", _npm("@continuedev/cli", "1.5.47", "cn"), _continue),
    Client("droid", "droid", _npm("droid", "0.215.0", "droid"), _droid),
    Client(
        "vibe", "Mistral Vibe", _pip("mistral-vibe", "3.0.2", "vibe", "3.13"), _vibe, unsteady=True
    ),
    Client("gptme", "gptme", _pip("gptme", "0.35.1", "gptme"), _gptme, shell=Shell.FED),
    Client(
        "mini", "mini-swe-agent", _pip("mini-swe-agent", "2.4.6", "mini"), _mini, shell=Shell.UNSEEN
    ),
)
"""Driven by long rounds."""


AIDER = Client("aider", "aider", _pip("aider-chat", "0.86.2", "aider"), _aider, shell=Shell.UNSEEN)
"""Runs what the person asks it to; a model's commands only after a question on a terminal."""


def sandboxed(name: str, kind: str = "") -> Client:
    """Return a client with a sandbox around its commands.

    Codex has two kinds, ``read-only`` and ``workspace-write``; Claude Code needs bwrap and socat.
    """
    (client,) = (client for client in CLIENTS if client.name == name)
    if name == "codex":
        return dataclasses.replace(client, setup=lambda url: _codex(url, ("--sandbox", kind)))
    settings = {
        "sandbox": {"enabled": True, "failIfUnavailable": True, "allowUnsandboxedCommands": False}
    }
    files = {".claude/settings.json": json.dumps(settings)}
    return dataclasses.replace(
        client, setup=lambda url: dataclasses.replace(_claude(url), files=files)
    )
