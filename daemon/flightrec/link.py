"""What the daemon's two processes say to each other over their socket pair.

The front has the sockets and answers from memory; the writer has the database. Frames are as on the
wire: a 32-bit little-endian length and an array in MessagePack, whose first element is the
message's number.
"""

import struct
from typing import Generic, TypeVar

import msgspec

from flightrec.hints import HintRule, HintShown
from flightrec.prompt_corrections import Spoken
from flightrec.rules import Guard
from flightrec.wire import CommandFinished, CommandStarting

FRAME_MAX = 64 * 1024 * 1024
"""Bytes of a frame between two processes of ours: a bound against nonsense."""

RULES_PER_FRAME = 100
"""Rules are sent in portions, so that the front goes on answering while it takes them in."""

_LENGTH = struct.Struct("<I")


class Feed(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """To the writer: one whole run, still raw."""

    starting: CommandStarting
    finished: CommandFinished


class Shown(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """To the writer: a hint was shown."""

    shown: HintShown


class Ended(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """To the writer: a session's shell is gone."""

    session: bytes
    wall_us: int


class Corrected(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """To the writer: a person named commands to an agent, perhaps for one that just failed; raw."""

    session: bytes
    event: bytes
    spoken: Spoken
    at_us: int


class ClaudeFolder(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """To the writer: a session of Claude Code says that its files are in this folder."""

    folder: bytes


Recorded = Feed | Shown | Ended | Corrected | ClaudeFolder
"""What is kept until it is committed."""


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """To the writer: do what ``verb`` says; ``arguments`` is a JSON object."""

    id: int
    verb: str
    arguments: bytes


class Reload(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """To the writer: the settings have changed."""


class Drain(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """To the writer: commit what you have, and go."""


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """From the writer: the database is open, and all rules follow.

    ``notes`` are lines that the person should see. ``fresh`` tells that it is not the database that
    earlier rules came from.
    """

    notes: list[str]
    fresh: bool = False


class Rules(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """From the writer: rules that changed."""

    rules: list[HintRule]


class Guarded(msgspec.Struct, frozen=True, array_like=True, tag=17):
    """From the writer: all projects that are guarded by all their rules, and how."""

    projects: dict[str, Guard]


class Stored(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """From the writer: what has these keys need not be kept any longer.

    It is committed, was so before, or (``odd`` of them) cannot be recorded at all.
    """

    keys: list[bytes]
    odd: int = 0


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """From the writer: the answer to ``Ask``; ``error`` is one line for the person."""

    id: int
    error: str | None
    result: bytes = b"{}"


class Trouble(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """From the writer: why nothing can be stored at the moment, or None when it can again."""

    text: str | None


class Note(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """From the writer: a line for the log, which has one owner."""

    level: int
    text: str


ToWriter = Recorded | Ask | Reload | Drain
FromWriter = Ready | Rules | Guarded | Stored | Answer | Trouble | Note

RUN_KEY_SIZE = 16
"""A run's key is its id; keys of other messages are longer."""

_Message = TypeVar("_Message")
_encoder = msgspec.msgpack.Encoder()


def encode(message: ToWriter | FromWriter) -> bytes:
    """Return the whole frame."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def key_of(message: Recorded) -> bytes:
    """Return what the writer names this message by once it is committed."""
    match message:
        case Feed():
            return message.starting.run
        case Shown(shown):
            return shown.run + bytes([shown.phase]) + shown.gate.encode()
        case Ended():
            return message.session + b"end"
        case Corrected():
            return message.event + b"said"
        case ClaudeFolder():
            return b"folder of claude:" + message.folder


class LinkReader(Generic[_Message]):
    """Cuts what the other process sends into messages; its errors are ``msgspec.DecodeError``."""

    def __init__(self, decoder: "msgspec.msgpack.Decoder[_Message]") -> None:
        self._decoder = decoder
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[_Message]:
        """Return the messages that ``data`` completes."""
        self._buffer += data
        messages = []
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            if length > FRAME_MAX:
                raise msgspec.DecodeError(f"a frame of {length} bytes")
            end = start + _LENGTH.size + length
            if len(self._buffer) < end:
                break
            messages.append(self._decoder.decode(self._buffer[start + _LENGTH.size : end]))
            start = end
        del self._buffer[:start]
        return messages


def reader_of_writer() -> LinkReader[FromWriter]:
    """Return the front's reader."""
    return LinkReader(msgspec.msgpack.Decoder(FromWriter))


def reader_of_front() -> LinkReader[ToWriter]:
    """Return the writer's reader."""
    return LinkReader(msgspec.msgpack.Decoder(ToWriter))
