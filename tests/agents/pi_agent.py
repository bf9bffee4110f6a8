"""Installs the coding agent pi and runs it against a mock model: a real client, start to end."""

import fcntl
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.mock_model import MockModel
from agents.node import NODE_FOLDER, NPM

PACKAGE = "@mariozechner/pi-coding-agent@0.73.1"
"""One version for all runs: what it sends is compared byte for byte."""

INSTALL_LIMIT_S = 600
RUN_LIMIT_S = 120


def install() -> Path:
    """Return pi's program, installed once for all test processes of this machine.

    Raises ``OSError`` or ``subprocess.SubprocessError`` where the registry is out of reach.
    """
    cache = Path(tempfile.gettempdir()) / f"flightrec-tests-npm-{os.geteuid()}"
    folder = cache / PACKAGE.replace("/", "-")
    program = folder / "node_modules/.bin/pi"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _npm_install(folder)
            (folder / "done").touch()
    return program


def _npm_install(folder: Path) -> None:
    (folder / "package.json").write_text('{"private": true}')
    options = ["--no-audit", "--no-fund", "--loglevel=error", "--cache", str(folder / "cache")]
    subprocess.run(
        [*NPM, "install", *options, PACKAGE],
        cwd=folder,
        env={
            **os.environ,
            "HOME": str(folder),
            "PATH": f"{NODE_FOLDER}:{os.environ['PATH']}",
        },
        check=True,
        capture_output=True,
        timeout=INSTALL_LIMIT_S,
    )


@dataclass(frozen=True, slots=True)
class Pi:
    """pi for one home: configured for the mock model, with no way to any other."""

    program: Path
    home: Path

    def configure(self, model: MockModel) -> None:
        """Let pi know the mock model and nothing else."""
        settings = self.home / ".pi/agent/models.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        mock = {
            "id": "mock",
            "name": "mock",
            "reasoning": False,
            "input": ["text"],
            "contextWindow": 100_000,
            "maxTokens": 1000,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }
        provider = {
            "baseUrl": model.url,
            "api": "openai-completions",
            "apiKey": "no-key",
            "models": [mock],
        }
        settings.write_text(json.dumps({"providers": {"mock": provider}}))

    def environment(self) -> dict[str, str]:
        """Return the variables that pi is started with."""
        return {
            "HOME": str(self.home),
            "PATH": f"{NODE_FOLDER}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            "PI_OFFLINE": "1",
            "PI_SKIP_VERSION_CHECK": "1",
            "PI_TELEMETRY": "0",
            "FLIGHTREC_PATIENCE_MS": "2000",  # a busy machine is no dead daemon
        }

    def run(
        self, model: MockModel, folder: Path, before: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Have pi work through the model's script in ``folder``; ``before`` are words before it."""
        self.configure(model)
        words = ["--provider", "mock", "--model", "mock", "-p", "Please do the task."]
        return subprocess.run(
            [*before, str(self.program), *words],
            cwd=folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_LIMIT_S,
            check=False,
        )
