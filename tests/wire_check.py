"""The helper's own wire code, under the sanitizers, asked line by line."""

import subprocess

import helper_builds
from flightrec.wire import (
    AnyMessage,
    CommandFinished,
    CommandStarting,
    Hello,
    HookFired,
    SessionEnded,
)

NAMES = {
    Hello: "hello",
    CommandStarting: "starting",
    CommandFinished: "finished",
    SessionEnded: "ended",
    HookFired: "hook",
}


class WireCheck:
    """One process of it; ``close`` returns its exit status."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [helper_builds.wire_check()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer.endswith("\n"), f"wire-check ended at {line[:200]!r}"
        return answer.rstrip("\n")

    def encode(self, message: AnyMessage) -> bytes:
        """Return the frame that C makes of a message."""
        return bytes.fromhex(self.ask(as_words(message)))

    def decode(self, body: bytes) -> str:
        return self.ask(f"decode x{body.hex()}")

    def close(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(10)


def as_word(value: object) -> str:
    match value:
        case None:
            return "-"
        case bytes():
            return f"x{value.hex()}"
        case list():
            return " ".join([str(len(value)), *map(str, value)])
        case _:
            assert isinstance(value, int)
            return str(int(value))


def as_words(message: AnyMessage) -> str:
    fields = [getattr(message, name) for name in message.__struct_fields__]
    return " ".join([NAMES[type(message)], *map(as_word, fields)])
