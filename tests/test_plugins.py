"""Our plugins for opencode and pi, run by node below a scripted client: they never harm it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agents.node import NODE_FOLDER
from flightrec.hook_files import plugin_for
from flightrec.hook_parts import Setup

NODE = NODE_FOLDER / "node"

OPENCODE = """
const { Flightrec } = await import(process.argv[2])
const hooks = await Flightrec({ directory: "/src" })
const call = { tool: "bash", sessionID: "ses_1", callID: "call_1" }
const args = { command: "make" }
const seen = {}
const env = { env: {} }
await hooks["shell.env"]({ cwd: "/src", ...call }, env)
seen.env = env.env
try {
  await hooks["tool.execute.before"](call, { args })
} catch (error) {
  seen.denied = error.message
}
seen.command = args.command
const result = { output: "out\\n", metadata: { output: "out\\n", exit: 2 } }
await hooks["tool.execute.after"]({ ...call, args }, result)
seen.output = result.output
const system = { system: ["first"] }
await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, system)
await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, system)
seen.system = system.system
await hooks["chat.message"]({ sessionID: "ses_1" }, { parts: [{ type: "text", text: "hello" }] })
await hooks["tool.execute.before"]({ tool: "read" }, {})
await hooks["tool.execute.after"](undefined, undefined)
await hooks["chat.message"](undefined, null)
await hooks.event({ event: null })
console.log(JSON.stringify(seen))
"""

PI = """
const { default: flightrec } = await import(process.argv[2])
const handlers = {}
flightrec({ on: (event, handler) => (handlers[event] = handler) })
const ctx = { cwd: "/src", sessionManager: { getSessionId: () => "ses_1" } }
const seen = {}
await handlers.session_start({ reason: "startup" }, ctx)
const { BASH_ENV, ZDOTDIR, SHLVL, FLIGHTREC_CLIENT_SESSION } = process.env
seen.env = { BASH_ENV, ZDOTDIR, SHLVL, FLIGHTREC_CLIENT_SESSION }
const call = { toolName: "bash", toolCallId: "call_1", input: { command: "make" } }
const blocked = await handlers.tool_call(call, ctx)
if (blocked) seen.denied = blocked.block && blocked.reason
seen.command = call.input.command
const content = [{ type: "text", text: "out\\n" }]
const changed = await handlers.tool_result({ ...call, content }, ctx)
seen.output = (changed?.content ?? content).map((part) => part.text).join("")
const begun = await handlers.before_agent_start({ prompt: "hello", systemPrompt: "first" }, ctx)
seen.system = [begun?.systemPrompt ?? "first"]
await handlers.tool_call({ toolName: "bash", input: null }, ctx)
await handlers.tool_result(undefined, undefined)
await handlers.session_shutdown({}, ctx)
console.log(JSON.stringify(seen))
"""

CLIENTS = {"opencode": OPENCODE, "pi": PI}


def drive(agent: str, folder: Path, helper: str | None, **variables: str) -> dict[str, Any]:
    """Run the plugin with this helper; return what its client is left with."""
    setup = Setup(folder / "flightrec")
    setup.folder.mkdir(exist_ok=True)
    if helper is not None:
        setup.helper.write_text(f"#!/bin/sh\n{helper}\n")
        setup.helper.chmod(0o755)
    plugin, client = folder / "plugin.mjs", folder / "client.mjs"
    plugin.write_text(plugin_for(agent, setup))
    client.write_text(CLIENTS[agent])
    done = subprocess.run(
        [NODE, client, plugin],
        env={"PATH": "/usr/bin:/bin", "LOG": str(folder / "log"), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def untouched(seen: dict[str, Any]) -> bool:
    return (seen["command"], seen["output"], seen["system"], "denied" in seen) == (
        "make",
        "out\n",
        ["first"],
        False,
    )


@pytest.mark.parametrize("agent", CLIENTS)
@pytest.mark.parametrize(
    "helper",
    [None, "exit 0", "exit 3", "echo oops", "echo '[1]'", "echo null", "kill $$"],
)
def test_whatever_the_helper_does_the_client_goes_on(
    agent: str, helper: str | None, tmp_path: Path
) -> None:
    assert untouched(drive(agent, tmp_path, helper))


@pytest.mark.parametrize("agent", CLIENTS)
def test_a_helper_that_hangs_is_waited_for_once(agent: str, tmp_path: Path) -> None:
    assert untouched(drive(agent, tmp_path, 'echo asked >>"$LOG"; exec sleep 100'))
    assert (tmp_path / "log").read_text() == "asked\n"


@pytest.mark.parametrize("agent", CLIENTS)
def test_it_tells_each_event_in_our_own_words(agent: str, tmp_path: Path) -> None:
    drive(agent, tmp_path, 'echo "$*" >>"$LOG"; cat >>"$LOG"; echo >>"$LOG"')
    lines = (tmp_path / "log").read_text().splitlines()
    assert set(lines[::2]) == {f"hook {agent} {tmp_path}/flightrec/flightrec"}
    events = {event["event"]: event for event in map(json.loads, lines[1::2])}

    call = {"session": "ses_1", "id": "call_1", "cwd": "/src", "command": "make"}
    assert events["before"] == {"event": "before", **call}
    ended = {"exit": 2} if agent == "opencode" else {}
    assert events["after"] == {"event": "after", **call, "output": "out\n", **ended}
    assert events["prompt"] == {
        "event": "prompt",
        "session": "ses_1",
        "cwd": "/src",
        "prompt": "hello",
    }
    assert events["session_start"] == {"event": "session_start", "session": "ses_1", "cwd": "/src"}


@pytest.mark.parametrize("agent", CLIENTS)
def test_what_is_answered_reaches_command_result_and_prompt(agent: str, tmp_path: Path) -> None:
    answers = (
        'read -r event; case $event in *\'"before"\'*) echo \'{"decision": "%s", "reason": "why",'
        ' "command": "make all"}\' ;; *) echo \'{"context": "a note"}\' ;; esac'
    )
    denied = drive(agent, tmp_path, answers % "deny")
    assert denied["denied"] == "why"
    assert denied["command"] == "make"
    asked = drive(agent, tmp_path, answers % "ask")
    assert asked["denied"] == "why"
    rewritten = drive(agent, tmp_path, answers % "rewrite")
    assert rewritten["command"] == "make all"
    assert rewritten["output"] == "out\n\nwhy\n\na note\n"
    assert "".join(rewritten["system"]).count("a note") == (2 if agent == "opencode" else 1)


@pytest.mark.parametrize("agent", CLIENTS)
def test_shells_are_sent_to_our_scripts_but_not_inside_flightrec_run(
    agent: str, tmp_path: Path
) -> None:
    alone = drive(agent, tmp_path, "exit 0")["env"]
    assert alone["BASH_ENV"] == f"{tmp_path}/flightrec/bash-env.bash"
    assert alone["ZDOTDIR"] == f"{tmp_path}/flightrec/zdotdir"
    assert alone["FLIGHTREC_CLIENT_SESSION"] == "ses_1"
    assert drive(agent, tmp_path, "exit 0", FLIGHTREC_SESSION="ab")["env"] == {}
    (tmp_path / "flightrec/flightrec-helper").unlink()
    assert drive(agent, tmp_path, None)["env"] == {}
