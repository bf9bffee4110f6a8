"""Installs agents from their registries, each once for all test processes of this machine.

They lie outside every home, in a folder that keeps what earlier test runs have brought: the name
holds the version. Other users may read and run them.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.node import NODE_FOLDER, NPM
from conftest import RecordProperty
from daemon_process import USER, as_user

LIMIT_S = 600

_SHARED = Path("/var/tmp")  # not in memory, as /tmp is on many machines: it may come to gigabytes


class NotInstalledError(Exception):
    """The agent is not there; the text says why in one line."""


class UnreachableError(NotInstalledError):
    """What it takes is not here: its registry does not answer, or its Python is missing."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package of a registry, in one version, and the program in it that is the agent."""

    registry: str
    name: str
    version: str
    program: str
    python: str = ""
    """The version of Python that it takes, where ours will not do."""

    def install(self) -> Path:
        """Return the program. Raises NotInstalledError."""
        folder = _cache() / f"{self.name.replace('/', '-')}-{self.version}"
        folder.mkdir(mode=0o755, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "done").exists():
                _FETCH[self.registry](self, folder)
                (folder / "done").touch()
        return folder / _PROGRAMS[self.registry] / self.program


def _cache() -> Path:
    """Return the folder of all installations, which has to be ours."""
    folder = _SHARED / f"flightrec-tests-agents-{os.geteuid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    if folder.lstat().st_uid != os.geteuid():
        raise NotInstalledError(f"{folder} belongs to somebody else")
    return folder


def _npm(package: Package, folder: Path) -> None:
    (folder / "package.json").write_text('{"private": true}')
    options = ["--no-audit", "--no-fund", "--loglevel=error", "--cache", str(folder / "cache")]
    environment = {"HOME": str(folder), "PATH": f"{NODE_FOLDER}:{os.environ['PATH']}"}
    words = [*NPM, "install", *options, f"{package.name}@{package.version}"]
    try:
        _fetch(words, folder, environment)
    except NotInstalledError:
        _demand_answer([*NPM, "ping"], folder, environment)
        raise
    finally:
        shutil.rmtree(folder / "cache", ignore_errors=True)


def _pip(package: Package, folder: Path) -> None:
    pip = [str(folder / "bin/pip"), "--disable-pip-version-check"]
    _fetch([_python(package.python), "-m", "venv", str(folder)], folder, {})
    try:
        _fetch([*pip, "install", "-q", f"{package.name}=={package.version}"], folder, {})
    except NotInstalledError:
        _demand_answer([*pip, "download", "-q", "--no-deps", "pip"], folder, {})
        raise


def _python(version: str) -> str:
    """Return an interpreter of this version, ours by default, that everybody can run."""
    name = f"python{version}" if version else f"python3.{sys.version_info[1]}"
    for python in (shutil.which(name), f"/usr/bin/{name}", None if version else sys.executable):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            if python is not None:
                everybody = as_user(USER) if os.geteuid() == 0 else None
                subprocess.run([python, "-c", ""], preexec_fn=everybody, cwd="/", check=True)
                return python
    raise UnreachableError(f"there is no {name} that any user can run")


_FETCH = {"npm": _npm, "PyPI": _pip}
_PROGRAMS = {"npm": "node_modules/.bin", "PyPI": "bin"}


def _fetch(words: list[str], folder: Path, environment: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, "HOME": str(folder), **environment},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            umask=0o022,
        )
    except subprocess.TimeoutExpired:
        raise UnreachableError(f"not installed within {LIMIT_S} s") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
        raise NotInstalledError(lines[-1])


def _demand_answer(words: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Raise UnreachableError where the registry does not answer a simple question either."""
    try:
        _fetch(words, folder, environment)
    except NotInstalledError as error:
        raise UnreachableError(f"its registry is out of reach: {error}") from None


def program_of(package: Package) -> Path:
    """Return the package's program; skip the test where its registry is out of reach."""
    try:
        return package.install()
    except UnreachableError as error:
        pytest.skip(str(error))


def driven(package: Package, title: str, record_property: RecordProperty) -> Path:
    """Return the package's program, and let the summary know of it, or why it is not driven."""
    try:
        program = package.install()
    except NotInstalledError as error:
        record_property("not driven", f"{title} ({error})")
        if isinstance(error, UnreachableError):
            pytest.skip(str(error))
        raise
    record_property("driven", f"{title} {package.version}")
    return program
