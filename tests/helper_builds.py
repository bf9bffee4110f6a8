"""Builds of the C helper for tests: one at a time, whichever test process comes first."""

import fcntl
import functools
import shutil
import subprocess
from pathlib import Path

SHIM = Path(__file__).parent.parent / "shim"


def _make(*words: str) -> None:
    (SHIM / "build").mkdir(exist_ok=True)
    with (SHIM / "build/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(
            ["make", "-s", "-C", SHIM, *words], capture_output=True, text=True, check=False
        )
    assert made.returncode == 0, made.stderr


@functools.cache
def helper() -> Path:
    """Return the helper as releases have it, static where musl is installed.

    With the library for bash, which speaks to it: they are of one release.
    """
    static = ("CC=musl-gcc", "STATIC=1") if shutil.which("musl-gcc") else ()
    _make(*static)
    bash_library()
    return SHIM / "build/flightrec-helper"


@functools.cache
def preload_library() -> Path:
    """Return the library for ``flightrec run --preload``."""
    _make("preload")
    return SHIM / "build/flightrec-preload.so"


@functools.cache
def bash_library() -> Path:
    """Return the library that bash loads where it passes no stand-in."""
    _make("bash")
    return SHIM / "build/flightrec-bash.so"


@functools.cache
def sanitized_helper() -> Path:
    """Return the helper that ends itself at the first memory error or undefined behaviour."""
    _make("SANITIZE=1")
    return SHIM / "build/flightrec-helper-asan"


@functools.cache
def wire_check() -> Path:
    """Return the program that speaks for the helper's wire code."""
    _make("build/wire-check")
    return SHIM / "build/wire-check"


@functools.cache
def screen_check() -> Path:
    """Return the program that speaks for the helper's filter of terminal output."""
    _make("build/screen-check")
    return SHIM / "build/screen-check"
