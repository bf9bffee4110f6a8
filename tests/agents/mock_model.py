"""A scripted model, for driving real agents offline: the interfaces that they speak, on loopback.

A script is a list of turns: ``Run(command)`` has the model call the agent's own shell tool,
``Say(text)`` ends its turn. A request without a shell tool is the agent's own (a title, a
classification) and gets a short answer beside the script. The server keeps no state: each call's
id carries the number of its turn, and the agent sends the whole conversation back, so the highest
number in there says what comes next.
"""

import contextlib
import gzip
import json
import re
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

from agents import anthropic_messages, gemini_content, openai_chat, openai_responses
from agents.shell_tools import arguments_for, find_shell_tool, smallest
from agents.turns import Answer, Call, Event, Json, Reply, Tool, strings

_TURN = re.compile(r"turn(\d+)x")


@dataclass(frozen=True, slots=True)
class Run:
    """The model asks for a shell command; ``more`` are further arguments of the agent's tool."""

    command: str
    more: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Say:
    """The model says something, and is done."""

    text: str


Script = Sequence[Run | Say]


class Interface(Protocol):
    """What a module per interface knows of it."""

    @property
    def ENDINGS(self) -> tuple[str, ...]:  # noqa: N802 - a module's constant
        """How the paths of its requests end."""

    def tools(self, request: Json) -> list[Tool]:
        """Return the tools that the agent offers."""

    def history(self, request: Json) -> list[Json]:
        """Return the conversation so far."""

    def results(self, request: Json) -> Iterator[tuple[str, str]]:
        """Yield the id of each call and the text of its result."""

    def schema(self, request: Json) -> Json | None:
        """Return the JSON schema that the answer has to follow, if one is given."""

    def reply(self, request: Json, answer: Answer) -> Reply:
        """Return the answer in the interface's form."""


INTERFACES: tuple[Interface, ...] = (
    anthropic_messages,
    openai_responses,
    openai_chat,
    gemini_content,
)


@dataclass(frozen=True, slots=True)
class Request:
    """What an agent sent; ``interface`` is None where it is not about the model's answers."""

    path: str
    body: Json
    interface: Interface | None = None
    is_main: bool = False
    """Whether it belongs to the script; others are the agent's own."""


@dataclass
class MockModel:
    """A server that plays a script; ``requests`` holds what the agent sent, oldest first."""

    script: Script
    requests: list[Request] = field(default_factory=list)
    url: str = ""

    def tool_results(self) -> list[str]:
        """Return the text of each tool result that the model was given, in order."""
        found: dict[str, str] = {}
        for request in self._main():
            if request.interface is not None:
                for number, (call, text) in enumerate(request.interface.results(request.body)):
                    found[call or str(number)] = text
        return list(found.values())

    def first_prompt(self) -> str:
        """Return all text that the model was given before it said anything."""
        return "\n".join(strings(next(self._main()).body))

    def conversation(self) -> str:
        """Return all text of the conversation as the model was last given it."""
        *_, last = self._main()
        assert last.interface is not None
        return "\n".join(strings(last.interface.history(last.body)))

    def _main(self) -> Iterator[Request]:
        return (request for request in self.requests if request.is_main)

    def answer(self, path: str, body: Json) -> tuple[Request, Reply]:
        """Return how to take a request, and the reply; an empty list where there is none."""
        for interface in INTERFACES:
            if path.endswith(interface.ENDINGS):
                if "streamGenerateContent" in path:
                    body["stream"] = True
                answer, is_main = self._answer(interface, body)
                request = Request(path, body, interface, is_main)
                return request, interface.reply(body, answer)
        return Request(path, body), _SIDE.get(path.rpartition("/")[2].rpartition(":")[2], [])

    def _answer(self, interface: Interface, body: Json) -> tuple[Answer, bool]:
        """Return what the model says, and whether that is a turn of the script."""
        schema = interface.schema(body)
        tool = find_shell_tool(interface.tools(body))
        if schema is not None or tool is None:
            return Answer("side", "done" if schema is None else json.dumps(smallest(schema))), False
        number = _next_turn(interface.history(body))
        turn = self.script[number] if number < len(self.script) else Say("done")
        if isinstance(turn, Say):
            return Answer(f"turn{number}x", turn.text), True
        arguments = {**arguments_for(tool, turn.command), **turn.more}
        call = Call(f"call_turn{number}x", tool.name, arguments)
        return Answer(f"turn{number}x", call=call), True


_SIDE: dict[str, Reply] = {
    "models": {"object": "list", "data": [{"id": "mock", "object": "model"}]},
    "count_tokens": {"input_tokens": 10},
    "countTokens": {"totalTokens": 10},
}
"""What else agents ask for: the last word of the path → the answer."""


def _next_turn(history: Iterable[Json]) -> int:
    """Return the number of the first turn that the conversation does not have yet."""
    return max(map(int, _TURN.findall(json.dumps(list(history)))), default=-1) + 1


@contextlib.contextmanager
def mock_model(script: Script, listener: socket.socket | None = None) -> Iterator[MockModel]:
    """A model that answers inside the block, at ``url``.

    ``listener`` is a socket that listens already, perhaps in another network than ours.
    """
    model = MockModel(script)

    class Handler(_Handler):
        served = model

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=listener is None)
    if listener is not None:
        server.socket.close()
        server.socket = listener.dup()
    model.url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
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

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        self._serve(self._read_body())

    def _read_body(self) -> Json:
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            data = b"".join(self._chunks())
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        with contextlib.suppress(ValueError):
            body = json.loads(data)
            if isinstance(body, dict):
                return body
        return {}

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _serve(self, body: Json) -> None:
        request, reply = self.served.answer(self.path.partition("?")[0], body)
        self.served.requests.append(request)
        if reply == []:
            self._send(b"{}", "application/json", status=404)
        elif isinstance(reply, list):
            self._send(b"".join(map(_as_text, reply)), "text/event-stream")
        else:
            self._send(json.dumps(reply).encode(), "application/json")

    def _send(self, data: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _as_text(event: Event) -> bytes:
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" * (name is not None) + f"data: {text}\n\n").encode()
