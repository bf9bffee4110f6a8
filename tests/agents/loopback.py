"""A network that ends at the loopback interface, for programs that are to reach nobody else.

Also a file that such a program sees in the place of one of the system's.

A listening socket belongs to the network that it was made in. So a thread enters a new network,
opens the socket there and names the network by a descriptor; an agent's process enters that
before it starts. Making networks takes root; everybody else gets proxies that are not there.
"""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Loopback:
    """Where a server listens for the programs that ``enter`` was called in."""

    listener: socket.socket
    network: int | None

    def enter(self) -> None:
        """Be in this network from now on: for a child process, before it becomes the program."""
        if self.network is not None and _libc.setns(self.network, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")

    @property
    def environment(self) -> dict[str, str]:
        """Variables that keep a program at home where the network does not."""
        if self.network is not None:
            return {}
        nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
        return {**nowhere, "NO_PROXY": "127.0.0.1,localhost"}


@contextlib.contextmanager
def loopback() -> Iterator[Loopback]:
    """A network for the block's programs, with a socket that listens in it."""
    found: list[Loopback] = []
    _in_a_thread(lambda: found.append(_open()))
    try:
        yield found[0]
    finally:
        found[0].listener.close()
        if found[0].network is not None:
            os.close(found[0].network)


def put_in_the_place_of(path: str, file: Path) -> None:
    """Let this process and its children see ``file`` at ``path``, where that is possible."""
    if _libc.unshare(CLONE_NEWNS) == 0:
        _libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        _libc.mount(bytes(file), path.encode(), None, MS_BIND, None)


def _in_a_thread(work: Callable[[], None]) -> None:
    """Networks are entered by threads: let one end in the new network, and stay here."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def _open() -> Loopback:
    network = None
    if _libc.unshare(CLONE_NEWNET) == 0:
        network = os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    return Loopback(socket.create_server(("127.0.0.1", 0)), network)
