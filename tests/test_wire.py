"""The daemon's and the helper's encoders write the same bytes, and read each other's."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flightrec.wire import (
    FRAME_MAX,
    HOOK_FRAME_MAX,
    HOOK_PAYLOAD_MAX,
    HOOK_ROLE,
    LENGTH_SIZE,
    AnyMessage,
    CommandFinished,
    CommandStarting,
    FrameReader,
    Hello,
    HookFired,
    HookReply,
    Phase,
    Reply,
    Source,
    TailSource,
    Verdict,
    WireError,
    WordKind,
    decode,
    encode,
)
from wire_check import NAMES, WireCheck
from wire_messages import HOOK, MESSAGES, RUN, read_golden


@pytest.fixture(scope="module")
def wire_check() -> Iterator[WireCheck]:
    check = WireCheck()
    yield check
    assert check.close() == 0, "a sanitizer complained"


def body_of(message: AnyMessage) -> bytes:
    return encode(message)[LENGTH_SIZE:]


@pytest.mark.parametrize("name", MESSAGES)
def test_python_writes_the_golden_bytes(name: str) -> None:
    assert encode(MESSAGES[name]) == read_golden()[name]


@pytest.mark.parametrize("name", MESSAGES)
def test_python_reads_the_golden_bytes(name: str) -> None:
    assert FrameReader().feed(read_golden()[name]) == [MESSAGES[name]]


@pytest.mark.parametrize("name", [n for n, m in MESSAGES.items() if type(m) in NAMES])
def test_c_writes_the_golden_bytes(name: str, wire_check: WireCheck) -> None:
    assert wire_check.encode(MESSAGES[name]) == read_golden()[name]


def test_c_reads_the_golden_bytes(wire_check: WireCheck) -> None:
    golden = {name: frame[LENGTH_SIZE:] for name, frame in read_golden().items()}
    runs = " ".join(f"x{bytes([i]).hex() * 16}" for i in range(20))
    hint = MESSAGES["reply-hint"]
    assert isinstance(hint, Reply)

    assert wire_check.decode(golden["hello"]) == f"hello 1 x{b'0.1.0'.hex()}"
    assert wire_check.decode(golden["reply-none"]) == f"reply x{RUN.hex()} 0 0 x"
    assert wire_check.decode(golden["reply-hint"]) == f"reply x{RUN.hex()} 1 1 x{hint.text.hex()}"
    assert wire_check.decode(golden["reply-private"]) == f"reply x{RUN.hex()} 0 2 x"
    assert wire_check.decode(golden["committed-none"]) == "committed"
    assert wire_check.decode(golden["committed"]) == f"committed {runs}"
    assert wire_check.decode(golden["starting"]) == "other 2"
    text = b'{"suppressOutput": true}'.hex()
    assert wire_check.decode(golden["hook-reply"]) == f"hook-reply x{RUN.hex()} x{text}"


numbers = st.integers(-(2**63) + 1, 2**63 - 1)
counts = st.integers(0, 2**63 - 1)
ids = st.binary(min_size=16, max_size=16)
words = st.binary(max_size=256)
paths = st.binary(max_size=600)
startings = st.builds(
    CommandStarting,
    run=ids,
    session=ids,
    source=st.sampled_from(Source),
    shell=words,
    pid=numbers,
    tty=paths,
    cwd=paths,
    command=st.binary(max_size=70) | st.integers(0, 16_384).map(lambda n: b"c" * n),
    command_total=counts,
    boot=words,
    mono_us=numbers,
    wall_us=numbers,
    wants_reply=st.booleans(),
    word_kind=st.sampled_from(WordKind),
    parent=st.none() | ids,
    depth=numbers,
    path=st.none() | st.binary(max_size=70) | st.integers(0, 32_768).map(lambda n: b"p" * n),
    virtual_env=st.none() | paths,
    conda_prefix=st.none() | paths,
    agent=st.none() | words,
    tool_use_id=st.none() | words,
    tmux_pane=st.none() | words,
)
finisheds = st.builds(
    CommandFinished,
    run=ids,
    exit=st.none() | numbers,
    signal=st.none() | numbers,
    pipestatus=st.lists(numbers, max_size=256),
    usec=st.none() | numbers,
    cwd=paths,
    mono_us=numbers,
    wall_us=numbers,
    tail_source=st.sampled_from(TailSource),
    tail=st.binary(max_size=70) | st.integers(0, 8192).map(lambda n: b"t" * n),
    tail_total=counts,
    wants_reply=st.booleans(),
)


hooks = st.builds(
    HookFired,
    id=ids,
    agent=words,
    wants_reply=st.booleans(),
    session=st.none() | ids,
    client_session=st.none() | words,
    pid=numbers,
    cwd=paths,
    path=st.none() | st.integers(0, 32_768).map(lambda n: b"p" * n),
    total=counts,
    payload=st.binary(max_size=300) | st.sampled_from((b"j" * 65_535, b"j" * 65_536)),
)


@settings(max_examples=300, deadline=None)
@given(message=startings | finisheds | hooks)
def test_c_and_python_write_the_same_bytes_for_any_message(
    message: AnyMessage, wire_check: WireCheck
) -> None:
    assert wire_check.encode(message) == encode(message)


@settings(max_examples=300, deadline=None)
@given(
    text=st.binary(max_size=4096), phase=st.sampled_from(Phase), verdict=st.sampled_from(Verdict)
)
def test_c_reads_any_reply(
    text: bytes, phase: Phase, verdict: Verdict, wire_check: WireCheck
) -> None:
    reply = Reply(RUN, phase, verdict, text)

    expected = f"reply x{RUN.hex()} {phase:d} {verdict:d} x{text.hex()}"
    assert wire_check.decode(body_of(reply)) == expected


@settings(max_examples=500, deadline=None)
@given(body=st.binary(min_size=1, max_size=300))
def test_no_bytes_upset_the_c_reader(body: bytes, wire_check: WireCheck) -> None:
    assert wire_check.decode(body)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_damage_to_a_real_frame_upsets_the_c_reader(
    data: st.DataObject, wire_check: WireCheck
) -> None:
    body = bytearray(body_of(data.draw(st.sampled_from(list(MESSAGES.values())))))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(1, len(body)))

    assert wire_check.decode(bytes(body[:cut]))


def test_a_newer_daemon_s_further_fields_are_passed_over(wire_check: WireCheck) -> None:
    hello = msgspec.msgpack.encode([1, 1, b"9.0", b"daemon", 7, {"more": [1, 2]}, 1.5])
    reply = msgspec.msgpack.encode([4, RUN, 0, 1, b"text", "more"])

    assert wire_check.decode(hello) == f"hello 1 x{b'9.0'.hex()}"
    assert wire_check.decode(reply) == f"reply x{RUN.hex()} 0 1 x{b'text'.hex()}"


def test_an_older_daemon_s_missing_fields_are_empty(wire_check: WireCheck) -> None:
    hello = msgspec.msgpack.encode([1, 1, b"0.1"])
    reply = msgspec.msgpack.encode([4, RUN, 1, 0])

    assert wire_check.decode(hello) == f"hello 1 x{b'0.1'.hex()}"
    assert wire_check.decode(reply) == f"reply x{RUN.hex()} 1 0 x"


def test_a_reply_longer_than_allowed_is_refused(wire_check: WireCheck) -> None:
    assert wire_check.decode(msgspec.msgpack.encode([4, RUN, 0, 1, b"x" * 5000])) == "bad"


def test_python_refuses_what_is_no_message() -> None:
    for body in (b"", b"\xc1", b"\x90", b"\x91\x63", msgspec.msgpack.encode([2, b"short"])):
        with pytest.raises(WireError):
            decode(body)


@pytest.mark.parametrize("length", [0, FRAME_MAX + 1, 2**31, 2**32 - 1])
def test_a_length_out_of_bounds_is_refused_before_anything_is_kept(length: int) -> None:
    with pytest.raises(WireError):
        FrameReader().feed(length.to_bytes(LENGTH_SIZE, "little"))


HOOK_HELLO = encode(Hello(1, b"0.1.0", HOOK_ROLE, 1))
LARGE = msgspec.structs.replace(HOOK, total=1, payload=b"j" * HOOK_PAYLOAD_MAX)


def test_a_hook_s_first_message_may_be_large_and_nothing_else(wire_check: WireCheck) -> None:
    assert wire_check.encode(LARGE) == encode(LARGE)
    assert FrameReader().feed(HOOK_HELLO + encode(LARGE))[1:] == [LARGE]
    other_hello = encode(Hello(1, b"0.1.0", b"relay", 1))
    for before in (b"", other_hello, other_hello + HOOK_HELLO, HOOK_HELLO + encode(LARGE)):
        with pytest.raises(WireError):
            FrameReader().feed(before + encode(LARGE))
    with pytest.raises(WireError):
        FrameReader().feed(HOOK_HELLO + (HOOK_FRAME_MAX + 1).to_bytes(LENGTH_SIZE, "little"))


def test_a_hook_s_reply_longer_than_allowed_is_refused(wire_check: WireCheck) -> None:
    longest = encode(HookReply(RUN, b"x" * 32_768))[LENGTH_SIZE:]
    assert wire_check.decode(longest).startswith("hook-reply")
    assert wire_check.decode(msgspec.msgpack.encode([10, RUN, b"x" * 32_769])) == "bad"


def test_a_stream_may_be_cut_anywhere() -> None:
    stream = b"".join(encode(message) for message in MESSAGES.values())
    for size in (1, 3, 1000):
        reader = FrameReader()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]

        heard = [message for piece in pieces for message in reader.feed(piece)]

        assert heard == list(MESSAGES.values())
