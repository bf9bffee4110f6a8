"""The two small agreements of systemd: a socket that it holds, and a line when we are ready."""

import contextlib
import os
import socket
from pathlib import Path

FIRST_DESCRIPTOR = 3


def first_free_descriptor() -> int:
    """Return the lowest descriptor that systemd has not given us."""
    return FIRST_DESCRIPTOR + _given()


def adopt_socket(path: Path) -> socket.socket | None:
    """Return the listening socket that systemd has bound at ``path``, if it has."""
    if _given() != 1:
        return None
    adopted = socket.socket(fileno=FIRST_DESCRIPTOR)
    if adopted.family != socket.AF_UNIX or adopted.getsockname() != str(path):
        adopted.close()
        return None
    adopted.setblocking(False)  # noqa: FBT003 - its only argument
    adopted.set_inheritable(False)
    return adopted


def tell_systemd(line: str) -> None:
    """Tell the service manager, where there is one that wants to know."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager,
    ):
        manager.sendto(line.encode(), f"\0{address[1:]}" if address[0] == "@" else address)


def _given() -> int:
    """Return how many descriptors systemd has passed to this very process."""
    number = os.environ.get("LISTEN_FDS", "")
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or not number.isdigit():
        return 0
    return int(number)
