"""Put flightrec's hooks into the settings of coding agents, and take them out again."""

import argparse
import difflib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from flightrec.commands.terminal import ask, colour, one_line, plural, print_items
from flightrec.errors import ExitCode, FlightrecError
from flightrec.hook_clients import CLIENTS, NAMES, HookClient, Syntax, find_client
from flightrec.hook_files import (
    Person,
    Target,
    find_addition,
    install,
    installed_targets,
    is_here,
    note_trust,
    preview_install,
    preview_uninstall,
    project_targets,
    state_of,
    uninstall,
    user_targets,
)
from flightrec.installation import copy_files, one_at_a_time, read_manifest, remove_files
from flightrec.lifecycle import check_person
from flightrec.paths import find_paths, make_private_folder
from flightrec.places import find_place

HELP = "record an agent wherever it is started: hooks and variables in its own settings"

EXAMPLES = (
    ("flightrec hook install claude", "show what would be added to its settings, and ask"),
    ("flightrec hook install all --yes", "every agent that is used here"),
    ("flightrec hook install claude --scope project", "for this checkout alone"),
    ("flightrec hook install codex --dry-run", "show the difference, change nothing"),
    ("flightrec hook status", "which agents have them"),
    ("flightrec hook uninstall claude", "take back exactly what was added"),
)

ALL = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, line in (
        ("install", "add hooks and variables"),
        ("uninstall", "take them out again"),
        ("status", "say which files have them"),
    ):
        action = actions.add_parser(name, help=line, description=line)
        action.add_argument(
            "agents",
            nargs="*" if name == "status" else "+",
            metavar="AGENT",
            choices=(*NAMES, ALL),
            default=ALL,
            help=f"{', '.join(NAMES)}, or {ALL} that are used here",
        )
        if name == "status":
            action.add_argument("--json", action="store_true", help="as JSON")
            continue
        action.add_argument("-y", "--yes", action="store_true", help="do not ask")
        action.add_argument("--dry-run", action="store_true", help="only show the difference")
        action.add_argument(
            "--scope",
            choices=("user", "project"),
            help="your own settings (the default), or those of this checkout",
        )
        if name == "install":
            action.add_argument(
                "--trust",
                action="store_true",
                help="codex: also mark the hooks as trusted, which you would do in its /hooks",
            )


def run(arguments: argparse.Namespace) -> int:
    """Install, uninstall or look."""
    check_person()
    person = Person(find_paths(), os.environ)
    if arguments.action == "status":
        return _show_status(arguments, person)
    if arguments.action == "install":
        return _install(arguments, person)
    return _uninstall(arguments, person)


def _clients(names: Sequence[str], scope: str | None, person: Person) -> list[HookClient]:
    if ALL not in names:
        return [find_client(name) for name in dict.fromkeys(names)]
    found = [c for c in CLIENTS if is_here(c, person) and (scope != "project" or _has_project(c))]
    if not found:
        raise FlightrecError(f"no agent was found here; name one of {', '.join(NAMES)}")
    return found


def _has_project(client: HookClient) -> bool:
    return bool(project_targets(client, Path("/")))


def _say(troubles: Iterable[str]) -> None:
    """Print what was in the way of one agent and kept no other one."""
    for line in troubles:
        print(f"flightrec: {one_line(line)}; mend that and run this again", file=sys.stderr)


# --- install -------------------------------------------------------------------------------------


def _install(arguments: argparse.Namespace, person: Person) -> int:
    clients = _clients(arguments.agents, arguments.scope, person)
    troubles: list[str] = []
    shown = list(_show_install(clients, arguments, person, troubles))
    status = _install_shown(shown, arguments, person, troubles)
    _say(troubles)
    return ExitCode.TROUBLE if troubles else status


Shown = Sequence[tuple[HookClient, Sequence[Target]]]
"""Agents, and those of their files that change."""


def _show_install(
    clients: Iterable[HookClient],
    arguments: argparse.Namespace,
    person: Person,
    troubles: list[str],
) -> Iterator[tuple[HookClient, Sequence[Target]]]:
    """Print the differences, an agent at a time: all its files, or none where one is broken."""
    for client in clients:
        targets = list(_targets([client], arguments.scope or "user", person))
        try:
            previews = [(target, preview_install(target, person)) for target in targets]
        except FlightrecError as error:
            troubles.append(_left_out(client, error, arguments))
            continue
        yield client, [target for target, states in previews if _show(target, *states)]


def _left_out(client: HookClient, error: FlightrecError, arguments: argparse.Namespace) -> str:
    """Return the line about one of all agents. Raises the error of one that was named."""
    if ALL not in arguments.agents:
        raise error
    return f"{client.title} is left out: {error}"


def _install_shown(
    shown: Shown, arguments: argparse.Namespace, person: Person, troubles: list[str]
) -> int:
    changed = [target for _, targets in shown for target in targets]
    for target in changed:
        if target.is_shared:
            path = one_line(str(target.location.path))
            print(f"\n{path} is shared with everybody who has the project.")
    if changed and not arguments.dry_run:
        if not ask("\nChange that?", yes=arguments.yes):
            print("Nothing was changed.")
            return ExitCode.TROUBLE
        print()
    if shown and not arguments.dry_run:
        shown = _write(shown, arguments, person, troubles)
    return _say_installed(shown, arguments, person)


def _write(
    shown: Shown, arguments: argparse.Namespace, person: Person, troubles: list[str]
) -> Shown:
    """Change the files; return which agents' were changed."""
    for folder in (person.paths.state, person.paths.run):
        make_private_folder(folder)  # without it no shell or hook can start the daemon
    done = []
    with one_at_a_time(person.paths):
        copy_files(person.paths.home)
        for client, targets in shown:
            try:
                for target in targets:
                    install(target, person)
            except FlightrecError as error:
                troubles.append(_left_out(client, error, arguments))
            else:
                done.append((client, targets))
    return done


def _targets(clients: Iterable[HookClient], scope: str, person: Person) -> Iterator[Target]:
    for client in clients:
        if scope == "user":
            yield from user_targets(client, person)
            continue
        found = project_targets(client, _project())
        if not found:
            raise FlightrecError(f"{client.name} has no hooks for one project; leave out --scope")
        yield from found


def _project() -> Path:
    """Return the checkout that we are in. Raises FlightrecError in a home or the root."""
    root = Path(find_place(str(Path.cwd())).worktree)
    if root == root.parent or root == Path.home().resolve():
        raise FlightrecError("this is no project (a home or /); go into one")
    return root


def _say_installed(shown: Shown, arguments: argparse.Namespace, person: Person) -> int:
    for client, targets in shown:
        if not targets:
            print(f"{client.title}: installed already.")
        elif arguments.dry_run:
            print(f"{client.title}: nothing was changed.")
        else:
            print(f"{client.title}: installed; {client.shells}.")
        if client.name == "codex" and not arguments.dry_run:
            _see_to_trust(person, client, wanted=arguments.trust)
    return ExitCode.OK


def _see_to_trust(person: Person, client: HookClient, *, wanted: bool) -> None:
    """Mark Codex's hooks as trusted where the person asked for it, else say how to do it."""
    from flightrec.codex_trust import trust_hooks  # noqa: PLC0415 - few need it

    if not wanted:
        print(f"  {client.afterwards}")
        return
    trusted = trust_hooks(person.environment, Path.cwd(), person.setup.hook_command(client.name))
    with one_at_a_time(person.paths):
        for target in user_targets(client, person):
            if target.file.syntax is Syntax.TOML:
                note_trust(trusted, target, person)
    print(f"  {plural(len(trusted), 'hook')} trusted.")


# --- uninstall -----------------------------------------------------------------------------------


def _uninstall(arguments: argparse.Namespace, person: Person) -> int:
    names = NAMES if ALL in arguments.agents else arguments.agents
    found = {
        target.location.path: target
        for target in (*installed_targets(person), *_here(names, arguments.scope, person))
        if target.client.name in names and _is_in_scope(target, arguments.scope)
    }
    troubles: list[str] = []
    shown = dict(_show_uninstall(found.values(), person, troubles))
    if any(shown.values()) and not arguments.dry_run:
        if not ask("\nChange that?", yes=arguments.yes):
            print("Nothing was changed.")
            return ExitCode.TROUBLE
    elif not any(shown.values()) and not troubles:
        print("There is nothing of flightrec's.")
    if shown and not arguments.dry_run:
        with one_at_a_time(person.paths):
            for path in reversed(shown):  # a folder goes after what was put into it later
                try:
                    uninstall(found[path], person)
                except FlightrecError as error:
                    troubles.append(str(error))
            _remove_copies(person)
        if any(shown.values()):
            print("\nDone.")
    _say(troubles)
    return ExitCode.TROUBLE if troubles else ExitCode.OK


def _show_uninstall(
    targets: Iterable[Target], person: Person, troubles: list[str]
) -> Iterator[tuple[Path, bool]]:
    """Yield what holds something of ours, or did once, and whether it does now.

    A file that cannot be read is a line of ``troubles``, and keeps no other one.
    """
    for target in targets:
        try:
            differs = _show(target, *preview_uninstall(target, person))
        except FlightrecError as error:
            troubles.append(str(error))
            continue
        if differs or find_addition(target, person) is not None:
            yield target.location.path, differs


def _remove_copies(person: Person) -> None:
    """Take away the stable copy where nothing points to it any more."""
    manifest = read_manifest(person.paths.home)
    if not (manifest.settings or manifest.rc_files or manifest.first_lines):
        remove_files(person.paths.home)


def _here(names: Iterable[str], scope: str | None, person: Person) -> Iterator[Target]:
    """Yield what may hold something in this checkout, also where nobody noted it."""
    if scope == "project":
        yield from _targets(
            [c for c in map(find_client, names) if project_targets(c, Path("/"))], scope, person
        )


def _is_in_scope(target: Target, scope: str | None) -> bool:
    """Without a scope everything of an agent is meant."""
    return scope is None or target.is_project == (scope == "project")


# --- looking -------------------------------------------------------------------------------------


def _show(target: Target, before: bytes | None, after: bytes | None) -> bool:
    """Print the difference, if there is one, and return whether there is."""
    if before == after:
        return False
    path = str(target.location.path)
    if after is None:
        print(f"\n{one_line(path)} goes: it holds nothing else.")
        return True
    lines = difflib.unified_diff(
        _lines(before), _lines(after), path if before is not None else "nothing", path, lineterm=""
    )
    print()
    for line in lines:
        look = {"+": "green", "-": "red"}.get(line[:1], "")
        print(colour(one_line(line), look) if look else one_line(line))
    return True


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()


def _show_status(arguments: argparse.Namespace, person: Person) -> int:
    names = NAMES if ALL in arguments.agents else arguments.agents
    items = list(_status_items([find_client(name) for name in names], person))
    if arguments.json:
        print_items(items)
    else:
        for item in items:
            print(f"{item['agent']:10}{item['state']:12}{one_line(item['path'])}")
        _say(item["trouble"] for item in items if "trouble" in item)
    return ExitCode.TROUBLE if any(item["state"] == "broken" for item in items) else ExitCode.OK


def _status_items(clients: Iterable[HookClient], person: Person) -> Iterator[dict[str, str]]:
    installed = {target.location.path: target for target in installed_targets(person)}
    for client in clients:
        targets = {target.location.path: target for target in user_targets(client, person)}
        targets |= {p: t for p, t in installed.items() if t.client.name == client.name}
        for path, target in targets.items():
            scope = "project" if target.is_project else "user"
            state, trouble = _state(target, person)
            item = {"agent": client.name, "scope": scope, "state": state, "path": str(path)}
            yield item | ({"trouble": trouble} if trouble else {})


def _state(target: Target, person: Person) -> tuple[str, str]:
    try:
        return state_of(target, person), ""
    except FlightrecError as error:
        return "broken", str(error)
