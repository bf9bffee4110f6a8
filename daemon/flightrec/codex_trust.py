"""Codex's own word on its hooks, and the trust that a person gives them.

Codex runs no hook before somebody has looked at it: ``/hooks`` in its terminal. Its app server
says which hooks there are, with a digest each, and takes a digest as a sign of trust. It is asked
here so that the digest is Codex's own; nothing is written to its files by us.
"""

import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flightrec import __version__
from flightrec.errors import FlightrecError

LIMIT_S = 30.0

BY_HAND = "start codex and type /hooks instead"


@dataclass(frozen=True, slots=True)
class CodexHook:
    """One hook as Codex has it: ``trusted`` is whether it would run."""

    key: str
    digest: str
    trusted: bool


def list_hooks(environment: Mapping[str, str], cwd: Path, line: str) -> list[CodexHook]:
    """Return the hooks that are exactly this line. Raises FlightrecError."""
    with _app_server(environment, cwd) as server:
        return list(_ours(server.ask("hooks/list", {"cwds": [str(cwd)]}), line))


def trust_hooks(environment: Mapping[str, str], cwd: Path, line: str) -> list[str]:
    """Let Codex trust the hooks that are exactly this line; return its names for them.

    Raises FlightrecError.
    """
    with _app_server(environment, cwd) as server:
        hooks = list(_ours(server.ask("hooks/list", {"cwds": [str(cwd)]}), line))
        state = {hook.key: {"trusted_hash": hook.digest} for hook in hooks}
        edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        server.ask("config/batchWrite", {"edits": [edit]})
        after = list(_ours(server.ask("hooks/list", {"cwds": [str(cwd)]}), line))
    if not hooks or not all(hook.trusted for hook in after):
        raise FlightrecError(f"Codex did not take it; {BY_HAND}")
    return [hook.key for hook in hooks]


def _ours(answer: Any, line: str) -> Iterator[CodexHook]:  # noqa: ANN401 - JSON
    # A checkout may have hooks that call our helper, and something else besides.
    try:
        for place in answer["data"]:
            for hook in place["hooks"]:
                if hook.get("command") == line:
                    is_trusted = hook["trustStatus"] in ("trusted", "managed")
                    yield CodexHook(hook["key"], hook["currentHash"], is_trusted)
    except (KeyError, TypeError):
        raise FlightrecError(f"this version of Codex answers otherwise; {BY_HAND}") from None


class _AppServer:
    """JSON-RPC with a process, a line each."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._deadline_s = time.monotonic() + LIMIT_S
        self._number = 0
        self._read = b""

    def ask(self, method: str, parameters: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        self._number += 1
        self.tell({"id": self._number, "method": method, "params": parameters})
        while True:
            message = self._next()
            if message.get("id") != self._number or "method" in message:
                continue
            if "error" in message:
                raise FlightrecError(f"Codex refuses {method}; {BY_HAND}")
            return message.get("result")

    def tell(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise FlightrecError(f"Codex ended; {BY_HAND}") from None

    def _next(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        while b"\n" not in self._read:
            left_s = self._deadline_s - time.monotonic()
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, left_s))
            data = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not data:
                raise FlightrecError(f"Codex does not answer; {BY_HAND}")
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        try:
            found = json.loads(line)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


@contextlib.contextmanager
def _app_server(environment: Mapping[str, str], cwd: Path) -> Iterator[_AppServer]:
    program = shutil.which("codex", path=environment.get("PATH"))
    if program is None:
        raise FlightrecError("codex is not on the PATH")
    try:
        process = subprocess.Popen(
            [program, "app-server"],
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise FlightrecError(f"{program} cannot be started: {error.strerror}") from None
    try:
        server = _AppServer(process)
        client = {"name": "flightrec", "title": "flightrec", "version": __version__}
        server.ask("initialize", {"clientInfo": client})
        server.tell({"method": "initialized"})
        yield server
    finally:
        _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
