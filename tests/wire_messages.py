"""The messages whose bytes are kept in ``wire/golden.txt``: one release must read another's.

``python tests/wire_messages.py`` writes the file; a change of a line there is a change of the
protocol.
"""

from pathlib import Path

from flightrec.wire import (
    COMMAND_MAX,
    TAIL_MAX,
    AnyMessage,
    CommandFinished,
    CommandStarting,
    Committed,
    Hello,
    HookFired,
    HookReply,
    Phase,
    Reply,
    SessionEnded,
    Source,
    TailSource,
    Verdict,
    WordKind,
    encode,
)

GOLDEN = Path(__file__).parent / "wire/golden.txt"

RUN = bytes(range(16))
SESSION = bytes(range(240, 256))
PARENT = b"\xc4" * 16

PLAIN = CommandStarting(  # noqa: S604 - shell is a field
    run=RUN,
    session=SESSION,
    source=Source.RELAY,
    shell=b"bash",
    pid=4242,
    tty=b"/dev/pts/7",
    cwd=b"/home/jo/src",
    command=b"gti status",
    command_total=10,
    boot=b"0d9e5a8e-7c1d-4c1a-9f1b-1f0c2b3a4d5e",
    mono_us=81_000_123,
    wall_us=1_796_000_000_000_000,
)

FULL = CommandStarting(  # noqa: S604 - shell is a field
    run=RUN,
    session=SESSION,
    source=Source.SH,
    shell=b"zsh",
    pid=2_147_483_647,
    tty=b"",
    cwd=b"/tmp/\xff\xfe no utf-8",
    command=b"x" * COMMAND_MAX,
    command_total=2_000_000,
    boot=b"",
    mono_us=2**40,
    wall_us=2**50,
    wants_reply=False,
    word_kind=WordKind.FUNCTION,
    parent=PARENT,
    depth=3,
    path=b"/usr/bin:/bin" * 30,
    virtual_env=b"/venv",
    conda_prefix=b"",
    agent=b"pi",
    tool_use_id=b"toolu_1",
    tmux_pane=b"%5",
)

FINISHED = CommandFinished(
    run=RUN,
    exit=127,
    signal=None,
    pipestatus=[0, 1, 127, 255, 256, 70_000, -1, -33, -129, -40_000, 2**31],
    usec=1234,
    cwd=b"/home/jo/src",
    mono_us=81_001_357,
    wall_us=1_796_000_000_001_234,
    tail_source=TailSource.STDERR,
    tail=b"bash: gti: command not found\n",
    tail_total=29,
    wants_reply=True,
)

UNSEEN = CommandFinished(
    run=RUN,
    exit=None,
    signal=9,
    pipestatus=list(range(200)),
    usec=None,
    cwd=b"",
    mono_us=0,
    wall_us=0,
    tail_source=TailSource.PANE,
    tail=b"\x00\xff" * (TAIL_MAX // 2),
    tail_total=2**33,
)

HOOK = HookFired(
    id=RUN,
    agent=b"claude",
    wants_reply=True,
    session=SESSION,
    client_session=b"0199b3a8-0000-7000-8000-000000000001",
    pid=4242,
    cwd=b"/home/jo/src",
    path=b"/usr/bin:/bin",
    total=27,
    payload=b'{"hook_event_name": "Stop"}',
)

MESSAGES: dict[str, AnyMessage] = {
    "hello": Hello(1, b"0.1.0", b"relay", 4242),
    "starting": PLAIN,
    "starting-with-all-fields": FULL,
    "finished": FINISHED,
    "finished-unseen": UNSEEN,
    "reply-none": Reply(RUN, Phase.START, Verdict.NONE),
    "reply-hint": Reply(
        RUN, Phase.FINISH, Verdict.HINT, "flightrec: failed before (3×)\ntry: git".encode()
    ),
    "reply-private": Reply(RUN, Phase.START, Verdict.PRIVATE),
    "committed-none": Committed([]),
    "committed": Committed([bytes([i]) * 16 for i in range(20)]),
    "session-ended": SessionEnded(SESSION, 1_796_000_000_000_000),
    "hook-fired": HOOK,
    "hook-fired-too-large": HookFired(
        id=RUN,
        agent=b"pi",
        wants_reply=False,
        session=None,
        client_session=None,
        pid=1,
        cwd=b"",
        path=None,
        total=2**33,
        payload=b"",
    ),
    "hook-reply": HookReply(RUN, b'{"suppressOutput": true}'),
}


def read_golden() -> dict[str, bytes]:
    """Return the frames in the file by name."""
    lines = GOLDEN.read_text().splitlines()
    return {name: bytes.fromhex(digits) for name, digits in map(str.split, lines)}


if __name__ == "__main__":
    GOLDEN.write_text("".join(f"{name} {encode(m).hex()}\n" for name, m in MESSAGES.items()))
