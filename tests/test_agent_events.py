"""What the clients of agents say to their hooks, read without believing more than they say."""

import dataclasses
import json

import pytest

from flightrec.agent_ends import READERS, End
from flightrec.agent_events import DIALECTS, Moment, OddPayloadError, read_event
from hook_samples import SAMPLES, Fields


def end_of(agent: str, payload: Fields) -> End:
    event = read_event(agent, json.dumps(payload).encode())
    assert event is not None
    assert event.end is not None
    return event.end


def claude(**fields: object) -> Fields:
    return {**SAMPLES["claude"].before("make", "use-1"), **fields}


def gemini(text: str) -> Fields:
    sample = SAMPLES["gemini"].passed("make", "", "")
    return {**sample, "tool_response": {"llmContent": text, "returnDisplay": ""}}


def copilot(text: str, kind: str = "success") -> Fields:
    result = {"resultType": kind, "textResultForLlm": text}
    return {**SAMPLES["copilot"].before("make", ""), "toolResult": result}


def plugin(**fields: object) -> Fields:
    return {**SAMPLES["pi"].before("make", "c1"), "event": "after", **fields}


RUNS = End(background=True)


def test_every_dialect_has_a_reader_of_ends() -> None:
    assert set(DIALECTS) == set(READERS)


@pytest.mark.parametrize("agent", SAMPLES)
def test_a_command_is_read_with_all_that_its_event_says(agent: str) -> None:
    event = read_event(agent, json.dumps(SAMPLES[agent].before("cd x && make", "use-1")).encode())
    assert event is not None
    assert (event.moment, event.command, event.cwd) == (Moment.BEFORE, "cd x && make", "/tmp")
    assert event.session
    assert event.tool_use_id == ("use-1" if SAMPLES[agent].has_id else "")
    assert event.end is None


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            {"tool_response": {"stdout": "out", "stderr": "err", "interrupted": False}},
            End(0, "out\nerr"),
        ),
        ({"tool_response": {"stdout": "", "interrupted": True}}, End(None, "")),
        ({"tool_response": {"stdout": "", "backgroundTaskId": "b1"}}, End(background=True)),
        (
            {"tool_response": {"stdout": "", "returnCodeInterpretation": "Files differ"}},
            End(1),
        ),
        ({"tool_response": {"stdout": "", "returnCodeInterpretation": "A new one"}}, End(None)),
        ({"tool_response": "text"}, End(None, "text")),
        ({"tool_response": 7}, End(None)),
        ({}, End(None)),
        ({"error": "Exit code 2\nmake: ***", "duration_ms": 3}, End(2, "make: ***", usec=3000)),
        ({"error": "Exit code 1"}, End(1)),
        (
            {"error": "Exit code 143\nCommand timed out after 1s\npart"},
            End(143, "Command timed out after 1s\npart", timed_out=True),
        ),
        ({"error": "Exit code 130", "is_interrupt": True}, End(None)),
        ({"error": "Permission to use Bash has been denied."}, End(ran=False)),
        ({"error": "the program said: Exit code 4"}, End(ran=False)),
        ({"error": "Exit code 2\nx", "duration_ms": -1}, End(2, "x")),
        ({"error": "Exit code 2\nx", "duration_ms": True}, End(2, "x")),
    ],
)
def test_claude_s_ends(payload: Fields, expected: End) -> None:
    name = "PostToolUseFailure" if "error" in payload else "PostToolUse"
    assert end_of("claude", claude(hook_event_name=name, **payload)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Output: fine\nProcess Group PGID: 12", End(0, "fine")),
        ("Output: (empty)\nExit Code: 3\nProcess Group PGID: 12", End(3)),
        ("Output: a\nExit Code: 7\nb\nProcess Group PGID: 12", End(0, "a\nExit Code: 7\nb")),
        ("Output: no such file\nError: (none)\nExit Code: 2\nSignal: 15", End(2, "no such file")),
        ("Command: make\nDirectory: sub\nOutput: x\nExit Code: 2", End(2, "x")),
        (
            "<untrusted_context>\nOutput: no\nExit Code: 1\nSignal: 2\n</untrusted_context>",
            End(1, "no"),
        ),
        ("Command was cancelled by user before it could complete.", End(None)),
        ("Command moved to background (PID: 7). Output hidden.", End(background=True)),
        ("Command is running in background. PID: 7. Initial output:\nx", End(background=True)),
        ("Output: (empty)\nSignal: 9\nProcess Group PGID: 12", End(128 + 9)),
        ("Output: x\nSignal: SIGTERM", End(128 + 15, "x")),
        ("Output: x\nSignal: none of ours", End(0, "x")),
        ("Output: (empty)\nError: spawn bash ENOENT", End(None)),
        ("A summary of what the command wrote.", End(None)),
        ("", End(None)),
    ],
)
def test_gemini_s_ends(text: str, expected: End) -> None:
    found = end_of("gemini", gemini(text))
    assert (found.exit, found.background) == (expected.exit, expected.background)
    assert not expected.output or found.output == expected.output
    assert "(empty)" not in found.output


def test_a_command_of_gemini_that_another_hook_changed_ends_as_it_says() -> None:
    text = "<untrusted_context>\nOutput: no\nExit Code: 1\n</untrusted_context>"
    told = " Tool input parameters (command) were modified by a hook before execution."
    assert end_of("gemini", gemini(f"{text}\n\n[System]{told}")) == End(1, "no")


@pytest.mark.parametrize(
    ("text", "ran"),
    [
        ("Command injection detected: command substitution syntax ($(), backticks).", False),
        ("Command was cancelled by user before it could start.", False),
        ("Command was cancelled by user before it could complete.", True),
        ("<untrusted_context>\nOutput: Command injection detected: x\n</untrusted_context>", True),
        ("Output: Command injection detected: x", True),
    ],
)
def test_what_gemini_refuses_has_not_run(text: str, *, ran: bool) -> None:
    assert end_of("gemini", gemini(text)).ran is ran


def test_a_time_limit_of_gemini_is_one() -> None:
    text = "Command was automatically cancelled because it exceeded the timeout of 5 minutes."
    assert end_of("gemini", gemini(text)).timed_out


QWEN = "Command: make\nDirectory: (root)\nOutput: {}\nError: (none)\nExit Code: {}\nSignal: {}\n"
GROUP = "Process Group PGID: (none)"
CUT = "Tool output was too large …\nxx\n\n---\n... [CONTENT TRUNCATED] ...\n---\n\n"
STOPPED = "Command timed out after 9ms before it could complete. Below is the output before it "
LARGE = "Output too large to read at once (195.3 KB). Saved to: /tmp/x.txt\nConsider grep.\n\n"
LIMIT = "Command timed out after 1 seconds. Consider increasing the timeout for commands.\n\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (QWEN.format("out\nerr", 7, "(none)") + GROUP, End(7, "out\nerr")),
        (QWEN.format("(empty)", "(none)", 9) + GROUP, End(128 + 9)),
        (QWEN.format("x", 2, "(none)") + GROUP + "\n\nNote: it ran for 80s.", End(2, "x")),
        (
            QWEN.format(QWEN.format("a", 3, "(none)") + GROUP + "\n\nb", 2, "(none)") + GROUP,
            End(2, QWEN.format("a", 3, "(none)") + GROUP + "\n\nb"),
        ),
        (CUT + QWEN.format("x", 4, "(none)").split("Output: ")[1] + GROUP, End(4, "x")),
        ("Command timed out after 1000ms before it could complete.", End(timed_out=True)),
        (STOPPED + "timed out:\nx", End(None, "x", timed_out=True)),
        ("Background shell started.\nid: bg_1\npid: 7", End(background=True)),
        ('Foreground command "a\nb" promoted to background as bg_1.', End(background=True)),
        ("Command finished before the background-promote request. Output:\nx", End(None, "x")),
    ],
)
def test_qwen_s_ends(text: str, expected: End) -> None:
    payload = SAMPLES["qwen"].passed("make", "use-1", "")
    response = {"llmContent": text, "returnDisplay": ""}
    assert end_of("qwen", {**payload, "tool_response": response}) == expected
    assert SAMPLES["qwen"].failed is not None
    failure = SAMPLES["qwen"].failed("make", "use-1", "", 1)
    told = {**failure, "error": text, "duration_ms": 3}
    assert end_of("qwen", told) == dataclasses.replace(expected, usec=3000)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("out\n<shellId: 7 completed with exit code 5>", "success", End(5, "out")),
        ("<shellId: 0 completed with exit code 0>", "success", End(0)),
        ("a <shellId: 7 completed with exit code 5> b", "success", End(None)),
        ("<command with shellId: 0 is still running after 30 seconds>", "success", RUNS),
        ("<command started in background with shellId: 6>", "success", RUNS),
        (
            LARGE + "Preview (first 500 chars):\nno rule\n<shellId: 8 completed with exit code 4>",
            "success",
            End(4, "no rule"),
        ),
        ("The user rejected this tool call.", "rejected", End(ran=False)),
    ],
)
def test_copilot_s_ends(text: str, kind: str, expected: End) -> None:
    found = end_of("copilot", copilot(text, kind))
    assert (found.exit, found.ran) == (expected.exit, expected.ran)
    assert found.background is expected.background
    assert not expected.output or found.output == expected.output


def test_half_a_character_in_an_output_loses_no_event() -> None:
    payload = claude(
        hook_event_name="PostToolUseFailure", error="Exit code 2\nmake: \ud83d", cwd="/tmp/\ud83d"
    )
    assert end_of("claude", payload) == End(2, "make: \ud83d")


def test_copilot_s_arguments_may_be_text_that_holds_them() -> None:
    payload = {**SAMPLES["copilot"].before("x", ""), "toolArgs": '{"command": "make all"}'}
    event = read_event("copilot", json.dumps(payload).encode())
    assert event is not None
    assert event.command == "make all"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"output": "out"}, End(0, "out")),
        ({"output": "out\n\nCommand exited with code 5"}, End(5, "out")),
        ({"output": "Command exited with code 1"}, End(1)),
        ({"output": "(no output)"}, End(0)),
        ({"output": "x\n\nCommand aborted"}, End(None, "x")),
        ({"output": "x\n\nCommand timed out after 9 seconds"}, End(None, "x", timed_out=True)),
        ({"output": "x", "exit": 4, "duration_ms": 2}, End(4, "x", usec=2000)),
        ({"output": "x", "exit": None}, End(None, "x")),
        ({"output": "x", "exit": "4"}, End(None, "x")),
        ({"output": "x", "exit": 4, "interrupted": True}, End(None, "x")),
        ({"output": "", "background": True}, End(background=True)),
    ],
)
def test_pi_s_ends(fields: Fields, expected: End) -> None:
    assert end_of("pi", plugin(**fields)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("out\nerr\n\n\n[Process exited with code 0]", End(0, "out\nerr")),
        ("Command completed successfully\n\n[Process exited with code 0]", End(0)),
        ("x\n\n[Process exited with code 141]", End(141, "x")),
        ("x\n\nFull command output saved to: /tmp/x.log (195KB)\n\n[Process exited with code 0]",
         End(0, "x")),
        ("Background process started (PID: 7)\nCommand: sleep 9", End(background=True)),
        ("Background process started\n\n[Process exited with code 0]",
         End(0, "Background process started")),
        (LIMIT + "Partial output before timeout:\n1\n", End(None, "1\n", timed_out=True)),
        ("Command timed out after 60 seconds. Consider it.", End(timed_out=True)),
        ("of another version", End(None, "of another version")),
    ],
)  # fmt: skip
def test_droid_s_ends(text: str, expected: End) -> None:
    payload = {**SAMPLES["droid"].passed("make", "", ""), "tool_response": text}
    assert end_of("droid", payload) == expected


def test_what_codex_and_cursor_say_has_no_status() -> None:
    for response in ("Exit code 1", {"output": "Exit code 1"}):
        payload = SAMPLES["codex"].passed("make", "use-1", "")
        assert end_of("codex", {**payload, "tool_response": response}) == End(None, "Exit code 1")
    cursor = SAMPLES["cursor"].passed("make", "", "exit code 1")
    assert end_of("cursor", cursor) == End(None, "exit code 1", usec=12_000)


def test_the_folder_that_a_tool_is_given_is_below_the_session_s() -> None:
    for key, folder, expected in (
        ("dir_path", "sub", "/tmp/sub"),
        ("directory", "/srv", "/srv"),
        ("directory", "", "/tmp"),
    ):
        payload = SAMPLES["gemini"].before("make", "")
        payload["tool_input"][key] = folder
        event = read_event("gemini", json.dumps(payload).encode())
        assert event is not None
        assert event.cwd == expected


@pytest.mark.parametrize(
    ("agent", "payload", "moment"),
    [
        ("claude", {"hook_event_name": "UserPromptSubmit", "prompt": "hi"}, Moment.PROMPT),
        ("gemini", {"hook_event_name": "BeforeAgent", "prompt": "hi"}, Moment.PROMPT),
        ("copilot", {"sessionId": "s", "prompt": "hi"}, Moment.PROMPT),
        ("cursor", {"hook_event_name": "beforeSubmitPrompt", "prompt": "hi"}, Moment.PROMPT),
        ("opencode", {"event": "prompt", "prompt": "hi"}, Moment.PROMPT),
        ("claude", {"hook_event_name": "SessionEnd", "reason": "clear"}, Moment.SESSION_END),
        ("copilot", {"sessionId": "s", "reason": "complete"}, Moment.SESSION_END),
        ("copilot", {"sessionId": "s", "source": "new"}, Moment.SESSION_START),
        ("pi", {"event": "session_end"}, Moment.SESSION_END),
    ],
)
def test_other_moments_are_read_too(agent: str, payload: Fields, moment: Moment) -> None:
    event = read_event(agent, json.dumps(payload).encode())
    assert event is not None
    assert (event.moment, event.prompt) == (moment, payload.get("prompt", ""))


@pytest.mark.parametrize("agent", SAMPLES)
def test_no_cut_of_an_event_is_taken_for_one(agent: str) -> None:
    raw = json.dumps(SAMPLES[agent].passed("make", "use-1", "done")).encode()
    for cut in range(len(raw)):
        with pytest.raises(OddPayloadError):
            read_event(agent, raw[:cut])
