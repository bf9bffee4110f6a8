"""The agents that tests drive: a row each, and how each is told of the mock model alone.

A client is started in an environment of its own, with files in a throw-away home.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agents.installs import Package

PROMPT = "Please do the task."
KEY = "no-key"


@dataclass(frozen=True, slots=True)
class Setup:
    """What it takes to start a client: words after its program, variables, files in the home."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Client:
    """An agent: ``name`` is ours for it, ``setup`` takes the model's address."""

    name: str
    title: str
    package: Package
    setup: Callable[[str], Setup]
    volatile: re.Pattern[str] | None = None
    """What a client adds to a result that is another each time."""
    shells: bool = True
    """Whether commands run in a shell that can be seen; otherwise only programs are."""


def _npm(name: str, version: str, program: str) -> Package:
    return Package("npm", name, version, program)


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


def _codex(url: str) -> Setup:
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
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT),
        {"OPENAI_API_KEY": KEY},
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
        {".config/opencode/opencode.json": json.dumps(config)},
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
