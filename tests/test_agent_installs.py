"""An agent that is not there is named in the last lines of a test run, and why."""

import subprocess
import sys
from pathlib import Path

import pytest

from agents import installs
from agents.installs import NotInstalledError, Package, UnreachableError

TESTS = Path(__file__).parent

NOBODY = "http://127.0.0.1:9/"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installs, "_SHARED", tmp_path)
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    monkeypatch.setenv("PIP_RETRIES", "0")


def test_a_registry_that_does_not_answer_is_nobody_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", NOBODY)

    with pytest.raises(UnreachableError, match="its registry is out of reach: "):
        Package("npm", "some-agent", "1.0.0", "agent").install()


def test_a_version_that_a_registry_does_not_have_is_a_fault() -> None:
    with pytest.raises(NotInstalledError) as caught:
        Package("npm", "semver", "0.0.0-none", "semver").install()

    if isinstance(caught.value, UnreachableError):
        pytest.skip(str(caught.value))
    assert "\n" not in str(caught.value)


def test_a_python_that_is_not_there_is_named() -> None:
    with pytest.raises(UnreachableError, match=r"there is no python9\.9 that any user can run"):
        Package("PyPI", "some-agent", "1.0.0", "agent", "9.9").install()


def test_an_agent_is_installed_once(tmp_path: Path) -> None:
    package = Package("npm", "semver", "7.7.2", "semver")
    try:
        program = package.install()
    except UnreachableError as error:
        pytest.skip(str(error))
    before = program.stat().st_ctime_ns

    assert package.install() == program
    assert program.stat().st_ctime_ns == before
    assert program.is_relative_to(tmp_path)


def test_the_last_lines_name_what_was_driven_and_what_was_not(tmp_path: Path) -> None:
    (tmp_path / "test_agents.py").write_text(
        "import pytest\n"
        "def test_one(record_property): record_property('driven', 'One 1.0')\n"
        "def test_two(record_property):\n"
        "    record_property('not driven', 'Two (no registry)')\n"
        "    pytest.skip('no registry')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-n", "2"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(TESTS), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    lines = done.stdout.splitlines()
    assert "agents driven: One 1.0" in lines[-5:]
    assert "NOT DRIVEN: Two (no registry)" in lines[-5:]
    assert lines[-1].startswith("=")
    assert "1 passed, 1 skipped" in lines[-1]
