"""A hook's event in the words of a shell: what one would have said of the same command."""

import functools
import time
from pathlib import Path

from flightrec.agent_events import AgentEvent
from flightrec.wire import COMMAND_MAX, CommandStarting, HookFired, Source

FOLDER_MAX = 4096
NAME_MAX = 256
"""Bytes that the wire allows."""


def starting_of(event: AgentEvent, fired: HookFired, session: bytes) -> CommandStarting:
    """Return the message of a command that begins, or has ended, now."""
    command = event.command.encode("utf-8", "replace")
    return CommandStarting(
        run=fired.id,
        session=session,
        source=Source.HOOK,
        shell=b"",
        pid=fired.pid,
        tty=b"",
        cwd=folder_of(event, fired),
        command=command[:COMMAND_MAX],
        command_total=len(command),
        boot=_boot_id(),
        mono_us=time.monotonic_ns() // 1000,
        wall_us=time.time_ns() // 1000,
        wants_reply=False,
        agent=fired.agent,
        tool_use_id=event.tool_use_id.encode("utf-8", "replace")[:NAME_MAX] or None,
    )


def folder_of(event: AgentEvent, fired: HookFired) -> bytes:
    """Return where the event happened, as the client says; else where its hook was started."""
    folder = event.cwd.encode("utf-8", "replace")
    is_usable = folder.startswith(b"/") and b"\0" not in folder and len(folder) <= FOLDER_MAX
    return folder if is_usable else fired.cwd


@functools.cache
def _boot_id() -> bytes:
    """Return what orders the clocks of all shells since the system started."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return b""
