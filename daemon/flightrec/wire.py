"""What helpers and daemon say to each other: bytes on a socket ↔ typed messages.

A frame is a 32-bit little-endian length and that many bytes of MessagePack: one array whose first
element is the message's number and whose further elements are its fields in order. A reader
ignores elements beyond the ones that it knows and fills in those that are missing, so both sides
may be one release apart. ``shim/wire.c`` writes the same bytes; ``tests/wire/`` holds golden frames
that both must produce.

Text is bytes here: a shell's command or directory need not be UTF-8.
"""

import enum
import struct
from typing import Annotated

import msgspec

PROTOCOL = 1
"""Served together with its predecessor; anything else is asked to go."""

FRAME_MAX = 256 * 1024
"""Bytes of one frame's body; checked before anything is buffered."""

COMMAND_MAX = 16 * 1024
TAIL_MAX = 8 * 1024
REPLY_MAX = 4 * 1024

HOOK_ROLE = b"hook of an agent"
"""In a hello: what comes next may be a ``HookFired`` of HOOK_FRAME_MAX bytes, nothing after it."""

HOOK_PAYLOAD_MAX = 1024 * 1024
HOOK_FRAME_MAX = HOOK_PAYLOAD_MAX + 64 * 1024
HOOK_REPLY_MAX = 32 * 1024

_LENGTH = struct.Struct("<I")
LENGTH_SIZE = _LENGTH.size

Id = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
"""128 random bits. Run and session ids are random, never pids: sandboxes renumber pids."""

Path_ = Annotated[bytes, msgspec.Meta(max_length=4096)]
Word = Annotated[bytes, msgspec.Meta(max_length=256)]
Variable = Annotated[bytes, msgspec.Meta(max_length=32 * 1024)]


class Source(enum.IntEnum):
    """Which door saw the command."""

    RELAY = 0
    PTY = 1
    SH = 2
    ENV = 3
    SHIM = 4
    HOOK = 5
    IMPORT = 6


class TailSource(enum.IntEnum):
    """What the tail is a tail of."""

    NONE = 0
    STDERR = 1
    MERGED = 2
    STDOUT = 3
    PANE = 4


class WordKind(enum.IntEnum):
    """What the shell itself makes of the command's first word, before it looks at PATH."""

    UNKNOWN = 0
    ALIAS = 1
    FUNCTION = 2
    BUILTIN = 3


class Phase(enum.IntEnum):
    """Which of a run's two messages a reply answers."""

    START = 0
    FINISH = 1


class Verdict(enum.IntEnum):
    """What the helper should do.

    HOLD is a hint, and the person wants to be asked before the command runs.
    """

    NONE = 0
    HINT = 1
    PRIVATE = 2
    HOLD = 3


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Any message; the subclass's tag is the array's first element."""


class Hello(Message, frozen=True, tag=1):
    """First frame in both directions."""

    protocol: int
    version: Word
    role: Word = b""
    pid: int = 0


class CommandStarting(Message, frozen=True, tag=2):
    """A command line was accepted and is about to run.

    ``wants_reply`` is false where the command runs already (a resend, a line that the shell reports
    only at its next prompt). ``path``, ``virtual_env`` and ``conda_prefix`` are sent when they
    changed since the session's last message and are never stored. ``command_total`` is the
    command's full length in bytes, larger than ``command`` where it was cut.
    """

    run: Id
    session: Id
    source: Source
    shell: Word
    pid: int
    tty: Path_
    cwd: Path_
    command: Annotated[bytes, msgspec.Meta(max_length=COMMAND_MAX)]
    command_total: int
    boot: Word
    mono_us: int
    wall_us: int
    wants_reply: bool = True
    word_kind: WordKind = WordKind.UNKNOWN
    parent: Id | None = None
    depth: int = 0
    path: Variable | None = None
    virtual_env: Path_ | None = None
    conda_prefix: Path_ | None = None
    agent: Word | None = None
    tool_use_id: Word | None = None
    tmux_pane: Word | None = None

    @property
    def truncated(self) -> bool:
        """Whether the command's text is not whole."""
        return self.command_total > len(self.command)


class CommandFinished(Message, frozen=True, tag=3):
    """The run has ended. ``exit`` is None where nobody could see it; 128 + n for signal n."""

    run: Id
    exit: int | None
    signal: int | None
    pipestatus: Annotated[list[int], msgspec.Meta(max_length=256)]
    usec: int | None
    cwd: Path_
    mono_us: int
    wall_us: int
    tail_source: TailSource = TailSource.NONE
    tail: Annotated[bytes, msgspec.Meta(max_length=TAIL_MAX)] = b""
    tail_total: int = 0
    wants_reply: bool = False


class Reply(Message, frozen=True, tag=4):
    """The daemon's answer to a message that wanted one. ``text`` is plain and made harmless."""

    run: Id
    phase: Phase
    verdict: Verdict
    text: Annotated[bytes, msgspec.Meta(max_length=REPLY_MAX)] = b""


class Committed(Message, frozen=True, tag=5):
    """These runs are in the database: the helper may forget them."""

    runs: list[Id]


class Request(Message, frozen=True, tag=6):
    """The command line asks for something; ``arguments`` is a JSON object."""

    id: int
    verb: Word
    arguments: bytes = b"{}"


class Response(Message, frozen=True, tag=7):
    """Answer to a request: a JSON object, or one line of error for the person."""

    id: int
    error: bytes | None
    result: bytes = b"{}"


class SessionEnded(Message, frozen=True, tag=8):
    """The shell of this session is gone: nothing more will come of it."""

    session: Id
    wall_us: int = 0


class HookFired(Message, frozen=True, tag=9):
    """An agent's client has called a hook of ours.

    ``payload`` is what the client says, unparsed; empty where its ``total`` bytes were too many.
    ``session`` is that of ``flightrec run``, ``client_session`` what the client's environment tells
    of its own one, ``pid`` the process that called. ``path`` is never stored.
    """

    id: Id
    agent: Word
    wants_reply: bool
    session: Id | None
    client_session: Word | None
    pid: int
    cwd: Path_
    path: Variable | None
    total: int
    payload: Annotated[bytes, msgspec.Meta(max_length=HOOK_PAYLOAD_MAX)]


class HookReply(Message, frozen=True, tag=10):
    """What the client is to read, in its own format; empty for nothing."""

    id: Id
    text: Annotated[bytes, msgspec.Meta(max_length=HOOK_REPLY_MAX)] = b""


AnyMessage = (
    Hello
    | CommandStarting
    | CommandFinished
    | Reply
    | Committed
    | Request
    | Response
    | SessionEnded
    | HookFired
    | HookReply
)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[AnyMessage] = msgspec.msgpack.Decoder(AnyMessage)


class WireError(Exception):
    """Bytes that are no message of ours; the connection that brought them is to be closed.

    ``before`` are the messages that came whole before them.
    """

    before: tuple[AnyMessage, ...] = ()


def encode(message: AnyMessage) -> bytes:
    """Return the whole frame, length included."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def decode(body: bytes | bytearray | memoryview) -> AnyMessage:
    """Return the message in a frame's body (without its length). Raises WireError."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(str(error)) from None


def frame_length(prefix: bytes | bytearray | memoryview, limit: int = FRAME_MAX) -> int:
    """Return the body's length from the 4 bytes before it. Raises WireError when out of bounds."""
    (length,) = _LENGTH.unpack(prefix)
    if not 0 < length <= limit:
        raise WireError(f"a frame of {length} bytes")
    return int(length)


class FrameReader:
    """Cuts a stream of bytes, fed in any pieces, into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._is_first = True
        self._limit = FRAME_MAX

    @property
    def is_amid_frame(self) -> bool:
        """Whether a message has begun and is not whole."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> list[AnyMessage]:
        """Return the messages that ``data`` completes. Raises WireError."""
        self._buffer += data
        messages: list[AnyMessage] = []
        try:
            self._cut(messages)
        except WireError as error:
            error.before = tuple(messages)
            raise
        return messages

    def _cut(self, messages: list[AnyMessage]) -> None:
        start = 0
        while len(self._buffer) - start >= LENGTH_SIZE:
            length = frame_length(self._buffer[start : start + LENGTH_SIZE], self._limit)
            end = start + LENGTH_SIZE + length
            if len(self._buffer) < end:
                break
            messages.append(decode(bytes(self._buffer[start + LENGTH_SIZE : end])))
            self._limit = self._limit_after(messages[-1])
            start = end
        del self._buffer[:start]

    def _limit_after(self, message: AnyMessage) -> int:
        """Return how large the next frame may be: a hook's, right after its hello, is larger."""
        is_hook = self._is_first and isinstance(message, Hello) and message.role == HOOK_ROLE
        self._is_first = False
        return HOOK_FRAME_MAX if is_hook else FRAME_MAX
