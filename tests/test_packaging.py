"""Every way of installing gives a working command; the package index is asked for the backend."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHIPPED = ("daemon", "shim", "shell-integration", "packaging", "tests", "README.md")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree without anything built."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in (*SHIPPED, "pyproject.toml", "LICENSE", "CHANGELOG.md"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, ignore=shutil.ignore_patterns("build", "__pycache__")
            )
        else:
            shutil.copy(source, folder / name)
    return folder


def run(*command: str | Path, home: Path) -> str:
    result = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, "HOME": str(home), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


def assert_works(command: Path, home: Path) -> None:
    """The command answers, and finds the files that it ships."""
    assert run(command, "--version", home=home).startswith("flightrec ")
    printed = run(command, "init", "bash", home=home)
    assert "__flightrec_helper=" in printed
    helper = printed.split("__flightrec_helper=")[1].splitlines()[0].strip("'")
    assert run(helper, "--version", home=home).startswith("flightrec-helper ")


def test_a_wheel_holds_the_helper_and_the_scripts(checkout: Path, home: Path) -> None:
    wheels = home / "wheels"
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", wheels, checkout, home=home)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        helper = archive.getinfo("flightrec/data/flightrec-helper")

    assert "flightrec/data/flightrec-preload.so" in names
    assert "flightrec/data/flightrec-bash.so" in names
    assert {"flightrec/data/flightrec.bash", "flightrec/data/flightrec.zsh"} <= names
    assert helper.external_attr >> 16 & 0o111, "the helper lost its executable bit"
    assert "none-any" not in wheel.name, "a wheel with a program in it is not for any system"
    assert not any(name.startswith(("tests/", "shim/")) for name in names)


@pytest.mark.full
def test_pip_installs_a_working_command(checkout: Path, home: Path) -> None:
    venv.create(home / "venv", with_pip=True)
    run(home / "venv/bin/pip", "install", "-q", checkout, home=home)

    assert_works(home / "venv/bin/flightrec", home)


@pytest.mark.full
def test_an_editable_install_works_from_the_source_tree(checkout: Path, home: Path) -> None:
    venv.create(home / "venv", with_pip=True)
    run(home / "venv/bin/pip", "install", "-q", "-e", checkout, home=home)

    assert_works(home / "venv/bin/flightrec", home)


@pytest.mark.full
def test_a_wheel_made_from_the_source_archive_works(checkout: Path, home: Path) -> None:
    venv.create(home / "venv", with_pip=True)
    run(home / "venv/bin/pip", "install", "-q", "build", home=home)
    run(home / "venv/bin/python", "-m", "build", "-o", home / "dist", checkout, home=home)
    (archive,) = (home / "dist").glob("*.tar.gz")
    (wheel,) = (home / "dist").glob("*.whl")  # `build` makes it from the archive
    with tarfile.open(archive) as sources:
        assert any(name.endswith("shim/main.c") for name in sources.getnames())
    run(home / "venv/bin/pip", "install", "-q", wheel, home=home)

    assert_works(home / "venv/bin/flightrec", home)


@pytest.mark.full
def test_uv_installs_it_as_a_tool(checkout: Path, home: Path) -> None:
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        pytest.skip("uv is not installed")
    run(uv, "tool", "install", "-q", checkout, home=home)

    assert_works(home / ".local/bin/flightrec", home)
