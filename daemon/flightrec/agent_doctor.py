"""Checks of one agent for ``flightrec doctor AGENT``: its program, hooks, shells, memory files."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from flightrec.agent_canary import fly, what_is_wrong
from flightrec.agent_files import AGENTS, personal_targets
from flightrec.agent_places import locate
from flightrec.agent_session import open_session, place_preload, session_environment
from flightrec.agent_shells import STARTS, ShellStart
from flightrec.client import request
from flightrec.commands.doctor import Found, State
from flightrec.commands.init import find_command
from flightrec.config import load_settings
from flightrec.errors import FlightrecError
from flightrec.hook_clients import CODEX_TRUST, NAMES, HookClient, Syntax, find_client
from flightrec.hook_files import Person, Target, state_of, user_targets
from flightrec.hook_parts import Default, Variables
from flightrec.installation import is_current
from flightrec.json_edit import JsonText
from flightrec.memory_file import read_file
from flightrec.places import find_place
from flightrec.shimmed_programs import shimmed_programs
from flightrec.toml_edit import TomlText

AGENTS_KNOWN = tuple(dict.fromkeys((*NAMES, *STARTS)))

PROGRAMS = {"mini-swe-agent": "mini", "continue": "cn"}
"""Agents whose program has another name; of those with hooks, the table knows."""

PROBE = {"hook_event_name": "FlightrecDoctor", "event": "doctor", "prompt": ""}
"""What a hook is given: an event that is none of ours, to which nothing is answered."""

SLOW_S = 1.0


class AgentPatient:
    """One agent of one person, where somebody is."""

    def __init__(self, agent: str, person: Person, cwd: Path) -> None:
        self.agent = agent
        self.person = person
        self.cwd = cwd
        self.client: HookClient | None = find_client(agent) if agent in NAMES else None
        self.start: ShellStart | None = STARTS.get(agent)
        self.environment = {
            name: value
            for name, value in person.environment.items()
            if not name.startswith("FLIGHTREC_") or name == "FLIGHTREC_PATIENCE_MS"
        }

    @property
    def title(self) -> str:
        """What people call it."""
        return self.client.title if self.client else self.agent

    def targets(self) -> list[Target]:
        """Return the person's own settings files of it."""
        return user_targets(self.client, self.person) if self.client else []


# --- its program ---------------------------------------------------------------------------------


def check_program(patient: AgentPatient) -> Found:
    """Look for the agent's program, and ask it for its version."""
    name = patient.client.program if patient.client else PROGRAMS.get(patient.agent, patient.agent)
    program = shutil.which(name, path=patient.environment.get("PATH"))
    if program is None:
        yield State.TROUBLE, f"{name} is not on your PATH", f"install {patient.title}, or see PATH"
        return
    try:
        done = subprocess.run(
            [program, "--version"],
            env=patient.environment,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield State.TROUBLE, f"{program} does not run: {error}", f"install {patient.title} again"
        return
    version = (done.stdout.strip() or done.stderr.strip() or "it says nothing").splitlines()[0]
    yield State.OK, f"{program}, {version}", ""


# --- its hooks -----------------------------------------------------------------------------------


def check_hooks(patient: AgentPatient) -> Found:
    """Look whether our hooks are in its settings, run, and are trusted."""
    if patient.client is None:
        yield State.NOTE, f"{patient.title} has no hooks that flightrec knows", ""
        return
    states = {target: state_of(target, patient.person) for target in patient.targets()}
    advice = f"run: flightrec hook install {patient.agent}"
    if set(states.values()) == {"missing"}:
        yield State.NOTE, f"not in {patient.title}'s settings", advice
        return
    for target, state in states.items():
        yield _look_at(target, state, advice)
        if _is_off(target):
            yield State.TROUBLE, f"disableAllHooks is set in {target.location.path}", "take it out"
    if not is_current(patient.person.paths.home):
        yield State.TROUBLE, f"{patient.person.setup.folder} is of another release", advice
    yield from _check_line(patient)
    if patient.agent == "codex":
        yield from _check_trust(patient)


def _look_at(target: Target, state: str, advice: str) -> tuple[State, str, str]:
    """Return what is to be said of one file."""
    path = target.location.path
    if state == "old":
        return State.TROUBLE, f"{path} is of another release", advice
    if state == "missing":
        return State.TROUBLE, f"nothing is left in {path}", advice
    return State.OK, f"in {path}", ""


def _is_off(target: Target) -> bool:
    """Whether the person has switched all hooks off, as Claude Code and Copilot CLI let them."""
    if target.file.syntax not in (Syntax.JSON, Syntax.JSON_WITH_COMMENTS):
        return False
    text = (read_file(target.location) or b"").decode("utf-8-sig")
    return JsonText(text, comments=True).get(["disableAllHooks"]) is True


def _check_line(patient: AgentPatient) -> Found:
    """Run a hook as the agent would."""
    line = patient.person.setup.hook_command(patient.agent)
    began_s = time.monotonic()
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        input=json.dumps(PROBE).encode(),
        env=patient.environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    took_s = time.monotonic() - began_s
    if done.returncode != 0 or done.stdout or done.stderr:
        said = (done.stdout + done.stderr).decode(errors="replace")
        text = f"a hook ends with {done.returncode} and says {said!r}"
        yield State.TROUBLE, text, "install flightrec again"
    elif not os.access(patient.person.setup.helper, os.X_OK):
        advice = f"run: flightrec hook install {patient.agent}"
        yield State.TROUBLE, f"{patient.person.setup.helper} is gone: hooks do nothing", advice
    elif took_s > SLOW_S:
        yield State.NOTE, f"a hook takes {took_s * 1000:.0f} ms", "see flightrec status"
    else:
        yield State.OK, f"a hook takes {took_s * 1000:.0f} ms", ""


def _check_trust(patient: AgentPatient) -> Found:
    from flightrec.codex_trust import list_hooks  # noqa: PLC0415 - few need it

    line = patient.person.setup.hook_command("codex")
    hooks = list_hooks(patient.environment, patient.cwd, line)
    trusted = sum(hook.trusted for hook in hooks)
    if trusted < len(hooks):
        yield State.TROUBLE, f"Codex trusts {trusted} of {len(hooks)} hooks", CODEX_TRUST
    else:
        yield State.OK, f"Codex trusts all {len(hooks)} hooks", ""


# --- its shells ----------------------------------------------------------------------------------


def check_run(patient: AgentPatient) -> Found:
    """Start a shell as the agent does below ``flightrec run``."""
    paused = request(patient.person.paths, "status", timeout_s=10).get("paused")
    if paused or patient.start is None:
        text = "recording is paused" if paused else "how it starts a shell is not known"
        yield State.NOTE, f"not tried: {text}", "run: flightrec resume" if paused else ""
        return
    names, path = shimmed_programs(), patient.environment.get("PATH", "")
    paths, start = patient.person.paths, patient.start
    preload = bool(start.needs) and load_settings(paths.config).agents.preload
    if preload:
        place_preload(paths)
        start = replace(start, needs="")
    with open_session(paths, patient.agent, names, path, find_command()) as opened:
        session = replace(opened, preload=preload)
        environment = session_environment(patient.environment, session)
        if not start.passes_bash_env and not _is_on(patient, "bashEnv"):
            environment.pop("BASH_ENV")
        yield from _judge(patient, start, environment)


def check_always(patient: AgentPatient) -> Found:
    """Start a shell as the agent does, with no more than its own settings give it."""
    if patient.client is None or patient.start is None:
        return
    variables = _own_variables(patient)
    if not variables and _could_have(patient.client):
        text = f"outside `flightrec run` no shell of {patient.title} is recorded"
        yield State.NOTE, text, f"run: flightrec hook install {patient.agent}"
        return
    if not variables:
        yield State.NOTE, f"{patient.title} alone: {patient.client.shells}", ""
        return
    yield from _judge(patient, patient.start, {**patient.environment, **variables})


def _judge(patient: AgentPatient, start: ShellStart, environment: Mapping[str, str]) -> Found:
    flown = fly(start, patient.agent, environment, patient.person.paths, patient.cwd)
    kind = "a command" if start.is_seen else "a program"
    wrong = list(what_is_wrong(flown, patient.agent, patient.person.paths))
    if wrong:
        advice = f"see {patient.person.paths.log}, and flightrec status"
        yield State.TROUBLE, f"{kind} in its kind of shell: {'; '.join(wrong)}", advice
        return
    took = f"{flown.took_s * 1000:.0f} ms"
    advice = f"whole lines need: {start.needs}" if start.needs else ""
    yield State.OK, f"{kind} in its kind of shell arrived after {took}: text, exit, folder", advice


def _could_have(client: HookClient) -> bool:
    """Whether its settings can give its shells variables."""
    return any(
        file.syntax is Syntax.PLUGIN or any(isinstance(part, Variables) for part in file.parts)
        for file in client.files
    )


def _own_variables(patient: AgentPatient) -> dict[str, str]:
    """Return what the agent's settings give its shells: what is written there, as it is written."""
    found: dict[str, str] = {}
    for target in patient.targets():
        data = read_file(target.location)
        if data is None:
            continue
        if target.file.syntax is Syntax.PLUGIN:
            found |= patient.person.setup.variables()
        for part in target.file.parts:
            if isinstance(part, Variables):
                found |= _read_variables(data.decode("utf-8-sig"), target, part)
    return found


def _read_variables(text: str, target: Target, part: Variables) -> dict[str, str]:
    if target.file.syntax is Syntax.TOML:
        toml = TomlText(text)
        values = {name: toml.get(part.path, name) for name in part.names}
    else:
        document = JsonText(text)
        values = {name: document.get([*part.path, name]) for name in part.names}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _is_on(patient: AgentPatient, name: str) -> bool:
    """Whether this setting of ours is on."""
    for target in patient.targets():
        if any(isinstance(part, Default) and part.name == name for part in target.file.parts):
            data = read_file(target.location)
            return data is not None and JsonText(data.decode(), comments=True).get([name]) is True
    return False


# --- its memory ----------------------------------------------------------------------------------


def check_memory(patient: AgentPatient) -> Found:
    """Say which files of the person's it reads at the start."""
    targets = personal_targets(patient.agent) if patient.agent in AGENTS else []
    if not targets:
        yield State.NOTE, f"{patient.title} reads no file of yours by itself", ""
    place = find_place(str(patient.cwd))
    for target in targets:
        try:
            location = locate(target, place, patient.person.paths.home, patient.environment)
            has_block = b"<!-- flightrec:begin" in (read_file(location) or b"")
        except FlightrecError as error:
            yield State.NOTE, str(error), ""
            continue
        advice = "" if has_block else f"run: flightrec export --agent {patient.agent}"
        what = "has rules of flightrec's" if has_block else "has none of flightrec's rules"
        yield State.OK, f"{location.path} {what}", advice


AGENT_CHECKS = (
    ("program", check_program),
    ("hooks", check_hooks),
    ("run", check_run),
    ("always on", check_always),
    ("memory", check_memory),
)


def examine_agent(agent: str, person: Person) -> Iterator[tuple[str, State, str, str]]:
    """Yield what each check of this agent finds: its name, state, text and advice."""
    patient = AgentPatient(agent, person, Path.cwd())
    for name, check in AGENT_CHECKS:
        try:
            for state, text, advice in check(patient):
                yield name, state, text, advice
        except FlightrecError as error:
            yield name, State.TROUBLE, str(error), ""
