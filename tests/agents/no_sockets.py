"""Run a program in a sandbox of the kind that agents have: it may connect to nothing.

``python no_sockets.py PROGRAM [ARGUMENT...]``. A seccomp filter answers connect(2) with EPERM, and
most of what one does with a socket that is there: read(2) and write(2) are left by all sandboxes.
"""

import ctypes
import os
import platform
import struct
import sys

FORBIDDEN = {
    "x86_64": (42, 44, 46, 47, 48, 51, 52, 54, 55, 299, 307),
    "aarch64": (203, 204, 205, 206, 208, 209, 210, 211, 212, 243, 269),
}
"""connect, sendto, recvmsg, sendmsg, shutdown, names and options, recvmmsg, sendmmsg."""

PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

LOAD_NUMBER = (0x20, 0, 0, 0)
ALLOW = (0x06, 0, 0, 0x7FFF0000)
REFUSE = (0x06, 0, 0, 0x00050000 | 1)
"""Instructions of the filter; the last one returns EPERM."""


def forbid_connections() -> None:
    """Let every one of these calls of this process and its children fail."""
    numbers = FORBIDDEN[platform.machine()]
    tests = [(0x15, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    instructions = (LOAD_NUMBER, *tests, ALLOW, REFUSE)
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for option, *arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(program), 0, 0),
    ):
        if libc.prctl(option, *arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    forbid_connections()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - its purpose
