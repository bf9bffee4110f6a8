"""Builds the C helper and puts it, with the shell scripts, into the wheel.

Compilers in order of preference: ``$FLIGHTREC_CC``; musl-gcc (a small static program, the fastest
to start); cc (dynamic: works, slower to start); the ``ziglang`` package's compiler where a release
machine has it. ``$FLIGHTREC_WHEEL_TAG`` overrides the wheel's tag.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from collections.abc import Iterator

HELPER = "flightrec-helper"
LIBRARIES = {"preload": "flightrec-preload.so", "bash": "flightrec-bash.so"}
"""What programs load, by the word that makes it; none of it has to be there."""
ZIG_TARGET = "x86_64-linux-musl"


class HelperBuildHook(BuildHookInterface):
    """Compile ``shim/`` and add what the package needs at run time."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before the wheel is packed; an editable install finds the files in the tree."""
        root = Path(self.root)
        helper = build_helper(root / "shim")
        libraries = [build_library(root / "shim", target) for target in LIBRARIES]
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = os.environ.get("FLIGHTREC_WHEEL_TAG") or f"py3-none-{platform}"
        if version == "editable":
            return
        included = build_data["force_include"]
        included[str(helper)] = f"flightrec/data/{HELPER}"
        for library in filter(None, libraries):
            included[str(library)] = f"flightrec/data/{library.name}"
        scripts = root / "shell-integration"
        for script in sorted(scripts.rglob("*")):
            if script.is_file() and script.suffix != ".md":
                included[str(script)] = f"flightrec/data/{script.relative_to(scripts)}"


def build_helper(shim: Path) -> Path:
    """Compile the helper with the first compiler that can, and return it."""
    tried = []
    for compiler, static in find_compilers():
        command = ["make", "-s", "-C", str(shim), f"CC={shlex.join(compiler)}"]
        result = subprocess.run(
            [*command, f"STATIC={int(static)}"], capture_output=True, text=True, check=False
        )
        if result.returncode == 0:
            return shim / "build" / HELPER
        tried.append(f"{shlex.join(compiler)}: {result.stderr.strip()[-2000:]}")
    raise SystemExit(
        "flightrec needs make and a C compiler to build its helper"
        " (Debian, Ubuntu: apt-get install gcc make musl-tools)\n" + "\n".join(tried)
    )


def build_library(shim: Path, target: str) -> Path | None:
    """Compile one of ``LIBRARIES`` and return it; None where nobody can."""
    for compiler, _ in find_compilers():
        command = ["make", "-s", "-C", str(shim), f"CC={shlex.join(compiler)}", target]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return shim / "build" / LIBRARIES[target]
    return None


def find_compilers() -> Iterator[tuple[list[str], bool]]:
    """Yield compilers as words, and whether to link statically."""
    chosen = os.environ.get("FLIGHTREC_CC")
    if chosen:
        yield shlex.split(chosen), "musl" in chosen
        return
    if shutil.which("musl-gcc"):
        yield ["musl-gcc"], True
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            yield [name], False
    if importlib.util.find_spec("ziglang"):
        yield [sys.executable, "-m", "ziglang", "cc", "-target", ZIG_TARGET], True
