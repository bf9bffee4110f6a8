"""Completions and the manual page: as the commands are, and usable."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGING = ROOT / "packaging"
BASH = PACKAGING / "completions/flightrec.bash"
ZSH = PACKAGING / "completions/_flightrec"
MANUAL = PACKAGING / "man/flightrec.1"

GENERATE = """
import sys
sys.path.insert(0, sys.argv[1])
import generate
print(*(path for path, make in generate.FILES_MADE.items() if path.read_text() != make()))
"""


def run(*words: str | Path, text: str = "") -> str:
    done = subprocess.run(
        [str(word) for word in words],
        input=text,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_generated_files_are_up_to_date() -> None:
    """Otherwise run: python packaging/generate.py."""
    assert run(sys.executable, "-c", GENERATE, PACKAGING).split() == []


def complete(*words: str) -> list[str]:
    """Return what bash offers for the last word."""
    script = (
        f'. "{BASH}"; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _flightrec;'
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return run("bash", "--norc", "-c", script, "bash", *words).split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("flightrec", "rul"), ["rules"]),
        (("flightrec", "help", "st"), ["status", "stats"]),
        (("flightrec", "init", ""), ["bash", "zsh", "-h", "--help"]),
        (("flightrec", "rules", "ret"), ["retire"]),
        (("flightrec", "rules", "show", "--j"), ["--json"]),
        (("flightrec", "rules", "--status", "pro"), ["promoted"]),
        (("flightrec", "export", "--agent", "cla"), ["claude"]),
        (("flightrec", "export", "--to", ""), []),
        (("flightrec", "nonsense", ""), []),
    ],
)
def test_bash_offers_what_may_follow(words: tuple[str, ...], offered: list[str]) -> None:
    assert complete(*words) == offered


ZSH_SCRIPT = """
_describe() { print -rl -- "${(P@)2}" }
_arguments() { print -rl -- "$@" }
words=("$@[2,-1]") CURRENT=$(($# - 1))
. "$1"
"""


def complete_in_zsh(*words: str) -> str:
    """Return what the function hands to zsh's own completion."""
    return run("zsh", "-f", "-c", ZSH_SCRIPT, "zsh", ZSH, *words)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_offers_what_may_follow() -> None:
    assert "rules:list, show," in complete_in_zsh("flightrec", "r")
    assert "--failed[only those that failed as commands]" in complete_in_zsh("flightrec", "log", "")
    assert "retire:say that a rule is no longer needed" in complete_in_zsh("flightrec", "rules", "")
    assert ":rule:" in complete_in_zsh("flightrec", "rules", "show", "")
    assert ":shell:(bash zsh)" in complete_in_zsh("flightrec", "init", "")


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_the_manual_page_is_clean_and_shows_every_command() -> None:
    shown = run("groff", "-man", "-Tutf8", "-ww", "-P-c", "-P-b", "-P-u", MANUAL)
    assert "flightrec rules" in shown
    assert "EXIT STATUS" in shown
    assert 'eval "$(flightrec init bash)"' in shown
