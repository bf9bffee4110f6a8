"""Records ``scenarios.py`` by really running its commands: ``python tests/corpus/record.py``.

It is for a throw-away container and must be root there: it makes a person ``sam`` who may use
sudo, empties ``/home/sam`` before each session, and starts servers on loopback. What the commands
print is what lands in ``sessions.jsonl``; only the time between two commands is made up. Name
families or sessions as arguments to record those alone into the same files.
"""

import argparse
import base64
import fcntl
import hashlib
import json
import os
import pwd
import random
import re
import select
import shlex
import shutil
import socket
import subprocess
import sys
import termios
import time
import zipfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import further_scenarios  # noqa: F401 - adds its sessions to the others
from scenarios import SCENARIOS, Scenario

HERE = Path(__file__).parent
PERSON = "sam"
HOME = Path("/home") / PERSON
PROJECT = HOME / "proj"
BOX = Path("/tmp/flightrec-recording")
TOOLS = BOX / "tools"
SLIM = BOX / "slim"
SLIM_TOOLS = """
awk bash basename cat chmod cp curl cut date df dirname du echo env find git grep head hostname id
ip ln ls mkdir mv node npm od openssl pgrep pkill printf ps pwd python3 rm rmdir sed setpriv sh
sleep sort ss stat sudo tail tar touch tr true uname uniq wc whoami xargs
"""
"""What a small container has: a PATH of these alone."""

TEXT_MAX = 2000
START_S = 1_800_000_000
LIMIT_S = 90.0

SEARCH_PATH = f"{TOOLS}:/usr/local/bin:/usr/bin:/bin"


def main() -> int:
    """Record what is asked for; everything by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="families or names of sessions")
    only = set(parser.parse_args().only)
    if os.geteuid() != 0:
        print("this makes a user and must be root, in a throw-away container", file=sys.stderr)
        return 1
    chosen = [s for s in SCENARIOS if not only or {s.family, s.name} & only]
    prepare_person()
    prepare_tools()
    events, labels = _recorded() if only else ({}, {})
    for number, scenario in enumerate(chosen, 1):
        try:
            events[scenario.name] = record(scenario)
        except RuntimeError as error:
            print(f"{number}/{len(chosen)} {scenario.name}: not recorded: {error}")
            continue
        labels[scenario.name] = label(scenario)
        print(
            f"{number}/{len(chosen)} {scenario.name}: {[e['exit'] for e in events[scenario.name]]}"
        )
        _save(events, labels)
    return 0


def _save(events: dict[str, list[dict[str, Any]]], labels: dict[str, dict[str, Any]]) -> None:
    """Write what there is, in the order of the scenarios; sessions that are gone there go here."""
    order = [s.name for s in SCENARIOS if s.name in events and s.name in labels]
    _write("sessions.jsonl", [event for name in order for event in events[name]])
    _write("labels.jsonl", [labels[name] for name in order])


def _recorded() -> tuple[dict[str, list[dict[str, Any]]], dict[str, dict[str, Any]]]:
    """Return what was recorded before, by session."""
    if not (HERE / "sessions.jsonl").exists():
        return {}, {}
    events: dict[str, list[dict[str, Any]]] = {}
    for line in (HERE / "sessions.jsonl").read_text().splitlines():
        event = json.loads(line)
        events.setdefault(event["session"], []).append(event)
    labels = [json.loads(line) for line in (HERE / "labels.jsonl").read_text().splitlines()]
    return events, {row["session"]: row for row in labels}


def _write(name: str, rows: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (HERE / name).write_text(text)


def label(scenario: Scenario) -> dict[str, Any]:
    """Return the line of ``labels.jsonl``."""
    return {
        "session": scenario.name,
        "source": "own",
        "family": scenario.family,
        "pairs": scenario.pairs,
        "nothing": scenario.nothing,
        "negative": scenario.negative,
    }


def record(scenario: Scenario) -> list[dict[str, Any]]:
    """Run one session and return its events."""
    _empty_home()
    _run_setup(scenario)
    clock = random.Random(scenario.name)  # noqa: S311 - made-up think time, the same each time
    now = float(START_S + clock.randrange(10_000))
    shell: Interactive | Agent = Agent(scenario) if scenario.agent else Interactive(scenario)
    events: list[dict[str, Any]] = []
    try:
        for step in scenario.steps:
            if isinstance(step, tuple) and step[0] == "edit":
                _edit(step[1], step[2])
                now += clock.uniform(8, 40)
                continue
            if isinstance(step, tuple) and step[0] == "wait":
                now += step[1]
                continue
            command, stop_after = (step[1], step[2]) if isinstance(step, tuple) else (step, None)
            event = shell.run(command, stop_after)
            event = {
                "session": scenario.name,
                "i": len(events),
                "ts": round(now, 2),
                **event,
            }
            events.append(_tidy(event))
            now += event["dur"] + clock.uniform(3, 16)
    finally:
        shell.close()
    return events


def _tidy(event: dict[str, Any]) -> dict[str, Any]:
    """Cut the output, and take out which machine this was and where its packages come from."""
    for name in ("stderr", "stdout_tail"):
        text = re.sub(rf"(?<![\w/]){re.escape(socket.gethostname())}\b", "box", event[name])
        event[name] = re.sub(r"https?://registry\.[\w.-]+", "https://registry.example", text)[
            -TEXT_MAX:
        ]
    return event


def _edit(path: str, text: str) -> None:
    """Change a file as an editor would: no shell sees it."""
    target = PROJECT / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    _own(target)


def _own(path: Path) -> None:
    person = pwd.getpwnam(PERSON)
    os.chown(path, person.pw_uid, person.pw_gid)


# the person and the tools


def prepare_person() -> None:
    """Make the person, with sudo and without a password."""
    try:
        pwd.getpwnam(PERSON)
    except KeyError:
        subprocess.run(["useradd", "-m", "-s", "/bin/bash", PERSON], check=True)
    rule = Path("/etc/sudoers.d/flightrec-recording")
    rule.write_text(f"{PERSON} ALL=(ALL) NOPASSWD: ALL\n")
    rule.chmod(0o440)


def prepare_tools() -> None:
    """Lay out what the sessions use: wheels that need no network, and tools outside PATH."""
    shutil.rmtree(BOX, ignore_errors=True)
    TOOLS.mkdir(parents=True)
    BOX.chmod(0o755)
    wheels = BOX / "wheels"
    wheels.mkdir()
    for name, module, version in (
        ("tinytable", "tinytable", "1.0"),
        ("tinytable", "tinytable", "2.1"),
        ("pyconfkit", "confkit", "0.3"),
        ("mdcheck", "mdcheck", "1.4"),
        ("colorlog-mini", "colorlog_mini", "0.9"),
    ):
        _make_wheel(wheels, name, module, version)
    SLIM.mkdir()
    for name in SLIM_TOOLS.split():
        found = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
        if found:
            (SLIM / name).symlink_to(found)
    uv = shutil.which("uv", path="/root/.pyenv/versions/3.11.7/bin:/usr/local/bin:/usr/bin")
    if uv:
        shutil.copy(uv, TOOLS / "uv")
    library = BOX / "pytest"
    if not library.exists():
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--target", str(library), "pytest"],
            check=True,
        )


def _make_wheel(folder: Path, name: str, module: str, version: str) -> None:
    """Write a small wheel by hand: a module and a program of the package's name."""
    bare = name.replace("-", "_")
    info = f"{bare}-{version}.dist-info"
    files = {
        f"{module}/__init__.py": f"VERSION = '{version}'\n\n\ndef main():\n    print(VERSION)\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {module}:main\n",
    }
    rows = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        rows.append(f"{path},sha256={digest.decode()},{len(text.encode())}")
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    with zipfile.ZipFile(folder / f"{bare}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


def _empty_home() -> None:
    subprocess.run(
        ["bash", "-c", f"chattr -R -i {HOME} 2>/dev/null; chmod -R u+rwX {HOME}"], check=False
    )
    for entry in HOME.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()
    PROJECT.mkdir()
    (HOME / ".config/pip").mkdir(parents=True)
    (HOME / ".config/pip/pip.conf").write_text(
        f"[global]\nno-index = true\nfind-links = {BOX}/wheels\ndisable-pip-version-check = true\n"
    )
    (HOME / ".npmrc").write_text("offline=true\nfund=false\naudit=false\nupdate-notifier=false\n")
    (HOME / ".gitconfig").write_text(
        "[user]\n\tname = Sam\n\temail = sam@example.org\n[init]\n\tdefaultBranch = main\n"
        "[advice]\n\tdetachedHead = false\n"
    )
    for path in [HOME, *HOME.rglob("*")]:
        _own(path)


def _environment(scenario: Scenario) -> dict[str, str]:
    language = {"LANGUAGE": scenario.language} if scenario.language else {}
    return {
        "HOME": str(HOME),
        "USER": PERSON,
        "LOGNAME": PERSON,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PATH": SEARCH_PATH,
        "FR_PYTEST": str(BOX / "pytest"),
        "GOFLAGS": "-mod=mod",
        "GOPROXY": "off",
        "GOTELEMETRY": "off",
        "CARGO_NET_OFFLINE": "true",
        "HISTFILE": "/dev/null",
        "VIRTUAL_ENV_DISABLE_PROMPT": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        **language,
        **scenario.environment,
    }


def _as_person(scenario: Scenario, words: list[str]) -> list[str]:
    if scenario.root:
        return words
    return ["setpriv", f"--reuid={PERSON}", f"--regid={PERSON}", "--init-groups", *words]


def _run_setup(scenario: Scenario) -> None:
    script = "set -e\ncd ~/proj\n" + scenario.setup
    environment = {**_environment(scenario), "LANGUAGE": "", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        _as_person(scenario, ["bash", "-c", script]),
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"setup of {scenario.name} failed:\n{done.stdout}{done.stderr}")


# the two ways of running commands


class Agent:
    """A shell of its own for each command, as agents start them; only the directory is kept."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._directory = str(PROJECT)
        self._pwd = BOX / "pwd"

    def run(self, command: str, stop_after: float | None) -> dict[str, Any]:
        """Run one command and return what was seen of it."""
        shell = self._scenario.shell
        self._pwd.write_text(self._directory)
        self._pwd.chmod(0o666)
        before = self._directory
        keep = f"trap 'pwd > {shlex.quote(str(self._pwd))}' EXIT\n" if shell != "sh" else ""
        merged = self._scenario.agent == "merged"
        started = time.monotonic()
        # The command stands on a line of its own after `eval`, so that the shell counts from 1.
        script = f"{keep}eval {shlex.quote(command)}" if keep else command
        done = subprocess.run(
            _as_person(self._scenario, [shell, "-c", script]),
            env=_environment(self._scenario),
            cwd=before,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            timeout=stop_after or LIMIT_S,
            check=False,
        )
        self._directory = self._pwd.read_text().strip() or before
        out = done.stdout.decode(errors="replace")
        err = "" if merged else done.stderr.decode(errors="replace")
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        event: dict[str, Any] = {
            "cwd": before,
            "shell": shell,
            "command": command,
            "exit": status,
            "stderr": out if merged and status else err,
            "stdout_tail": "" if merged and status else out,
            "dur": round(time.monotonic() - started, 3),
            "agent": True,
        }
        if merged:
            event["merged"] = True
        return event

    def close(self) -> None:
        """Nothing is left running."""


_HOOK_BASH = (
    'PROMPT_COMMAND=\'__s=$? __p="${{PIPESTATUS[*]}}";'
    " if [[ $__a == 1 ]]; then exec >&7 2>&8;"
    ' printf "%s|%s|%s|end" "$__s" "$__p" "$PWD" >|{status}; fi; ((__a > 0)) && ((__a--))\''
)
_HOOK_ZSH = (
    'precmd() {{ local s=$? p="${{pipestatus[*]}}"; if [[ $__a == 1 ]]; then exec >&7 2>&8;'
    ' printf "%s|%s|%s|end" "$s" "$p" "$PWD" >|{status}; fi; ((__a > 0)) && ((__a--)) }}'
)


class Interactive:
    """One interactive shell on a terminal; each command is typed at its prompt."""

    def __init__(self, scenario: Scenario) -> None:
        self._shell = scenario.shell
        words = {
            "bash": ["bash", "--noprofile", "--norc", "--noediting", "-i"],
            "zsh": ["zsh", "-f", "-i", "+o", "zle", "+o", "prompt_cr", "+o", "prompt_sp"],
        }[scenario.shell]
        self._out, self._err, self._status = (BOX / name for name in ("out", "err", "status"))
        for path in (self._out, self._err, self._status):
            path.unlink(missing_ok=True)
            path.write_text("")
            path.chmod(0o666)
            _own(path)
        self._master, slave = os.openpty()
        self._process = subprocess.Popen(
            _as_person(scenario, words),
            env=_environment(scenario),
            cwd=PROJECT,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - there are no threads here
        )
        os.close(slave)
        self._type("PS1= PS2= PROMPT= PROMPT2= RPS1= PROMPT_EOL_MARK=; unset HISTFILE; __a=0")
        self._type("exec 7>&1 8>&2")
        hook = _HOOK_BASH if self._shell == "bash" else _HOOK_ZSH
        self._type(hook.format(status=self._status))
        self._directory = str(PROJECT)
        time.sleep(0.4)

    def _type(self, text: str) -> None:
        os.write(self._master, text.encode() + b"\n")

    def run(self, command: str, stop_after: float | None) -> dict[str, Any]:
        """Type one command and wait for its end, or for the moment to press Ctrl-C."""
        self._status.write_text("")
        before = self._directory
        self._type(f"exec >{self._out} 2>{self._err}; __a=2")
        time.sleep(0.05)
        started = time.monotonic()
        self._type(command)
        self._await(stop_after, started)
        duration = time.monotonic() - started
        status, pipestatus, directory, _end = self._status.read_text().split("|")
        self._directory = directory
        members = [int(s) for s in pipestatus.split()]
        event: dict[str, Any] = {
            "cwd": before,
            "shell": self._shell,
            "command": command,
            "exit": int(status),
            "stderr": self._err.read_text(errors="replace"),
            "stdout_tail": self._out.read_text(errors="replace"),
            "dur": round(duration, 3),
        }
        if len(members) > 1:
            event["pipestatus"] = members
        return event

    def _await(self, stop_after: float | None, started: float) -> None:
        stopped = False
        while not self._status.read_text().endswith("|end"):
            self._drain()
            waited = time.monotonic() - started
            if stop_after is not None and not stopped and waited > stop_after:
                os.write(self._master, b"\x03")
                stopped = True
            if waited > LIMIT_S:
                raise RuntimeError("a command did not end")
            time.sleep(0.02)

    def _drain(self) -> None:
        while select.select([self._master], [], [], 0)[0]:
            try:
                if not os.read(self._master, 65536):
                    return
            except OSError:
                return

    def close(self) -> None:
        """End the shell and what it left running."""
        self._type("kill $(jobs -p) 2>/dev/null; exit")
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._master)


def _take_terminal() -> None:
    """Make the terminal on standard input this process's own, so that Ctrl-C reaches its jobs."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


if __name__ == "__main__":
    sys.exit(main())
