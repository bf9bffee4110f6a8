"""A scripted model behind the chat-completions protocol, for driving a real agent offline.

A script is a list of turns: ``Run(command)`` has the model call the shell tool, ``Say(text)``
ends its turn. The server keeps no state: each call's id carries the number of its turn, and the
agent sends the whole conversation back, so the highest number in there says what comes next. It
listens on the loopback interface only.
"""

import contextlib
import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SHELL_TOOLS = ("bash", "shell", "exec_command", "run_shell_command")
COMMAND_PARAMETERS = ("command", "cmd")

_CALL_ID = re.compile(r"call_turn_(\d+)")


@dataclass(frozen=True, slots=True)
class Run:
    """The model asks for a shell command."""

    command: str


@dataclass(frozen=True, slots=True)
class Say:
    """The model says something, and is done."""

    text: str


@dataclass
class MockModel:
    """A server that plays a script; ``requests`` holds what the agent sent, oldest first."""

    script: Sequence[Run | Say]
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def tool_results(self) -> list[str]:
        """Return the text of each tool result that the model was given, in order."""
        results: dict[str, str] = {}
        for request in self.requests:
            for message in request.get("messages", []):
                if message.get("role") == "tool":
                    results[message["tool_call_id"]] = _text(message.get("content"))
        return list(results.values())

    def next_turn(self, request: dict[str, Any]) -> tuple[int, Run | Say]:
        """Return the number of the turn that a request asks for, and the turn."""
        done = _CALL_ID.findall(json.dumps(request.get("messages", [])))
        number = max(map(int, done), default=-1) + 1
        return number, self.script[number] if number < len(self.script) else Say("done")


@contextlib.contextmanager
def mock_model(script: Sequence[Run | Say]) -> Iterator[MockModel]:
    """A model that answers inside the block, at ``url``."""
    model = MockModel(script)

    class Handler(_Handler):
        served = model

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: MockModel

    def log_message(self, *_: object) -> None:
        """Stay silent."""

    def do_POST(self) -> None:
        """Answer the next turn, as a stream of events."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/chat/completions"):
            self.send_error(404)
            return
        self.served.requests.append(request)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in _events(request, *self.served.next_turn(request)):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True


def _events(request: dict[str, Any], number: int, turn: Run | Say) -> Iterator[dict[str, Any]]:
    """Yield the chunks of one answer."""
    if isinstance(turn, Say):
        yield _chunk(request, {"role": "assistant", "content": turn.text})
        yield _chunk(request, {}, "stop")
        return
    call = {
        "index": 0,
        "id": f"call_turn_{number}",
        "type": "function",
        "function": {"name": _shell_tool(request), "arguments": _arguments(request, turn.command)},
    }
    yield _chunk(request, {"role": "assistant", "content": None, "tool_calls": [call]})
    yield _chunk(request, {}, "tool_calls")


def _chunk(
    request: dict[str, Any], delta: dict[str, Any], finish: str | None = None
) -> dict[str, Any]:
    return {
        "id": "chatcmpl-mock",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": request.get("model", "mock"),
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _shell_tool(request: dict[str, Any]) -> str:
    """Return the name of the agent's own shell tool."""
    names = [tool["function"]["name"] for tool in request.get("tools", [])]
    return next(name for name in names if name in SHELL_TOOLS)


def _arguments(request: dict[str, Any], command: str) -> str:
    name = _shell_tool(request)
    (tool,) = (t["function"] for t in request["tools"] if t["function"]["name"] == name)
    known = tool["parameters"]["properties"]
    parameter = next(name for name in COMMAND_PARAMETERS if name in known)
    return json.dumps({parameter: command})


def _text(content: object) -> str:
    """Return the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part.get("text", "") for part in parts)
