"""The code keeps its own rules: linters, types, warnings, and documents that tell the truth."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = Path(sys.executable).parent


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def assert_clean(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]


def test_python_passes_the_linter() -> None:
    assert_clean(run(SCRIPTS / "ruff", "check", "--no-cache", "daemon", "tests", "packaging"))


def test_python_is_formatted() -> None:
    assert_clean(run(SCRIPTS / "ruff", "format", "--no-cache", "--check", "daemon", "tests"))


def test_python_is_fully_typed(tmp_path: Path) -> None:
    assert_clean(run(SCRIPTS / "mypy", f"--cache-dir={tmp_path}"))


def test_bash_passes_shellcheck() -> None:
    scripts = [
        path
        for path in (ROOT / "shell-integration").rglob("*.bash")
        if not path.name.startswith(".")
    ]
    assert scripts
    assert_clean(run(SCRIPTS / "shellcheck", "--shell=bash", *scripts, ROOT / ".ci/run"))


def test_zsh_parses() -> None:
    scripts = list((ROOT / "shell-integration").rglob("*.zsh"))
    assert scripts
    for script in scripts:
        assert_clean(run("zsh", "-n", script))


@pytest.mark.parametrize("compiler", ["gcc", "clang", "musl-gcc"])
def test_c_compiles_without_a_warning(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    assert_clean(
        run(
            "make",
            "-s",
            "-C",
            "shim",
            f"CC={compiler}",
            f"BUILD={tmp_path}",
            "WERROR=1",
            "all",
            "preload",
            "bash",
        )
    )


def test_the_readme_s_test_command_is_the_one_that_ci_runs() -> None:
    last_line = (ROOT / ".ci/run").read_text().rstrip().splitlines()[-1]
    assert f"\n{last_line}\n" in (ROOT / "README.md").read_text()


def test_every_ignored_rule_has_its_reason_beside_it() -> None:
    bare = []
    for path in [*ROOT.glob("daemon/**/*.py"), *ROOT.glob("tests/**/*.py")]:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            ignored = re.search(r"#\s*(noqa|type: ignore)(:\s*[A-Z0-9, ]+|\[[^]]*\])?", line)
            if ignored and not line[ignored.end() :].strip(" -—:,"):
                bare.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not bare, "\n".join(bare)


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.5, Debian's for one, goes on inside such a group where it should not.

    An atomic group around a repeated one, ``(?>(?:a|b)*)``, means the same and works everywhere.
    """
    possessive = re.compile(r"\)(?:[*+?]|\{[0-9]*,?[0-9]*\})\+")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in ROOT.glob("daemon/**/*.py")
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if possessive.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_changelog_knows_the_version() -> None:
    source = (ROOT / "daemon/flightrec/__init__.py").read_text()
    version = re.search(r'__version__ = "(.+)"', source)
    assert version is not None
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()


def test_completions_and_manual_page_say_what_the_commands_say(tmp_path: Path) -> None:
    shutil.copy(ROOT / "packaging/generate.py", tmp_path)
    assert_clean(run(sys.executable, tmp_path / "generate.py"))

    for name in ("completions/flightrec.bash", "completions/_flightrec", "man/flightrec.1"):
        shipped = ROOT / "packaging" / name
        assert (tmp_path / name).read_text() == shipped.read_text(), "packaging/generate.py"
