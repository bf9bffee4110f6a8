"""Rules: what fails here and what works instead; show them, and overrule them."""

import argparse
import contextlib
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from flightrec.briefing import Briefings
from flightrec.client import request
from flightrec.commands.terminal import clock, colour, iso, one_line, plural, print_items
from flightrec.errors import ExitCode, FlightrecError
from flightrec.export import why_not
from flightrec.export_plan import outside_of
from flightrec.guard_rows import guarded_projects
from flightrec.paths import find_paths
from flightrec.places import find_place
from flightrec.rule_text import failing_command, where_it_fails, where_it_works, working_command
from flightrec.rulebook import Rulebook
from flightrec.rules import Guard, Rule, Scope, Status
from flightrec.store import Store
from flightrec.told import why_no_gate
from flightrec.who import agents_by_rule, show_agent

HELP = "list, show, approve, reject, retire, share, edit or guard by rules"

EXAMPLES = (
    ("flightrec rules", "all rules that are not archived"),
    ("flightrec rules list --here --status promoted", "those that hold, in this project"),
    ("flightrec rules show ERR-20261130-001", "one rule, and why it is or is not exported"),
    ("flightrec rules approve ERR-20261130-001", "your word counts as a confirmation"),
    ("flightrec rules reject ERR-20261130-001", "it is wrong: archive it for good"),
    ("flightrec rules retire ERR-20261130-001", "it was right once and is no longer needed"),
    ("flightrec rules edit ERR-20261130-001 'git switch main'", "another remedy"),
    ("flightrec rules guard ERR-20261130-001 deny", "let it stop an agent's command"),
    ("flightrec rules guard --project ask", "let all proved rules ask, in this project"),
    ("flightrec rules briefing", "what agents are told here when a session begins"),
)

SHOWN = (Status.CANDIDATE, Status.ACTIVE, Status.PROMOTED, Status.SHARED)

LOOKS = {Status.PROMOTED: "green", Status.SHARED: "green", Status.ARCHIVED: "dim"}

DECISIONS = {
    "approve": "say that a rule is right",
    "reject": "say that a rule is wrong",
    "retire": "say that a rule is no longer needed",
    "share": "let a rule into your own files of all projects, once it is promoted",
}

GUARD_USAGE = (
    "say: flightrec rules guard RULE ask|deny|rewrite|off|default,"
    " or: flightrec rules guard --project [DIR] ask|deny|rewrite|off"
)
DEFAULT = "default"
"""The word for a rule that does as its project says."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.set_defaults(act=_list)
    _add_listing(parser)
    acts = parser.add_subparsers(title="what to do", metavar="ACT")
    listing = acts.add_parser("list", help="all rules that fit (also without ACT)")
    listing.set_defaults(act=_list)
    _add_listing(listing)
    showing = acts.add_parser("show", help="one rule with all that is known of it")
    showing.set_defaults(act=_show)
    showing.add_argument("rule", help="its id; the last digits do where they are clear")
    showing.add_argument("--json", action="store_true", help="as JSON")
    for act, help_line in DECISIONS.items():
        deciding = acts.add_parser(act, help=help_line)
        deciding.set_defaults(act=_decide, verb=f"rule_{act}")
        deciding.add_argument("rules", nargs="+", metavar="rule", help="its id")
    editing = acts.add_parser("edit", help="give a rule another remedy")
    editing.set_defaults(act=_edit)
    editing.add_argument("rule", help="its id")
    editing.add_argument("working", help="the command that works, as you would type it")
    _add_guarding(acts.add_parser("guard", help="let rules stop or rewrite an agent's commands"))
    briefing = acts.add_parser("briefing", help="what agents are told when a session begins")
    briefing.set_defaults(act=_brief)
    briefing.add_argument("folder", nargs="?", default=".", help="anywhere in the project")


def _add_guarding(guarding: argparse.ArgumentParser) -> None:
    guarding.set_defaults(act=_guard)
    guarding.description = (
        "Before an agent's command runs that a rule is about: ask the person, deny it with the"
        " remedy as the reason, or rewrite it. Only promoted rules do so that were confirmed three"
        " times and never contradicted. Without arguments: what is guarded."
    )
    guarding.add_argument("--project", action="store_true", help="all rules, in one project")
    guarding.add_argument(
        "what",
        nargs="*",
        metavar="[RULE|DIR] MODE",
        help="a rule's id (or a folder) and ask, deny, rewrite, off, or default for a rule that"
        " does as its project says",
    )
    guarding.add_argument("--json", action="store_true", help="as JSON")


def _add_listing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--status", choices=[status.value for status in Status], help="only with this status"
    )
    parser.add_argument("--here", action="store_true", help="only those seen in this project")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    act: Callable[[argparse.Namespace], int] = arguments.act
    return act(arguments)


@contextlib.contextmanager
def open_rulebook() -> Iterator[Rulebook]:
    """Open the recorded rules for reading."""
    with contextlib.closing(Store.open_read_only(find_paths().database)) as store:
        yield Rulebook(store.connection)


def find_rule(rulebook: Rulebook, asked: str) -> Rule:
    """Return the rule with this id, or the only one whose id ends so. Raises FlightrecError."""
    found = rulebook.rule(asked.upper())
    if found is not None:
        return found
    rules = rulebook.rules()
    fitting = [rule for rule in rules if rule.id.endswith("-" + asked)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        ids = ", ".join(rule.id for rule in fitting)
        raise FlightrecError(f"several rules end so: {ids}")
    near = difflib.get_close_matches(asked.upper(), [rule.id for rule in rules], n=1)
    hint = f"; did you mean {near[0]}?" if near else "; flightrec rules lists them"
    raise FlightrecError(f"no rule {one_line(asked, 40)}{hint}")


def _list(arguments: argparse.Namespace) -> int:
    with open_rulebook() as rulebook:
        wanted = (Status(arguments.status),) if arguments.status else SHOWN
        rules = rulebook.rules(*wanted)
        agents = agents_by_rule(rulebook.connection)
    if arguments.here:
        project = find_place(str(Path.cwd())).project
        rules = [rule for rule in rules if project in rule.seen_in]
    if arguments.json:
        print_items([{**describe(rule), "agents": agents.get(rule.id, [])} for rule in rules])
        return ExitCode.OK
    for rule in rules:
        print(show_line(rule))
    if not rules:
        print("No rules yet. One is made when a command fails and another one mends it.")
    return ExitCode.OK


def show_line(rule: Rule) -> str:
    """Return a rule as one line for a person."""
    status = colour(f"{rule.status.value:9}", LOOKS.get(rule.status, "bold"))
    counts = f"R{rule.r} C{rule.c} D{rule.d}"
    scope = "everywhere" if rule.scope is Scope.USER else one_line(project_name(rule.project), 20)
    return f"{rule.id}  {status}  {counts:9}  {scope:10}  {show_pair(rule)}"


def show_pair(rule: Rule) -> str:
    """Return what fails and what works, as one harmless line."""
    failing = one_line(failing_command(rule), 200)
    working = one_line(working_command(rule), 400) or f"({one_line(rule.remedy.lesson, 200)})"
    failing += f" (in {one_line(where, 100)})" if (where := where_it_fails(rule)) else ""
    working += f" (in {where})" if (where := where_it_works(rule)) else ""
    kind = f"  [{rule.failure_kind}]" if rule.failure_kind else ""
    return f"{failing} → {working}{kind}"


def project_name(project: str) -> str:
    """Return what people call a project: the folder's name."""
    path = Path(project)
    return path.parent.name if path.name == ".git" else path.name or project


def describe(rule: Rule) -> dict[str, Any]:
    """Return a rule for a program."""
    return {
        "id": rule.id,
        "status": rule.status.value,
        "kind": rule.kind,
        "failure": rule.failure_kind,
        "failing": failing_command(rule),
        "failing_in": where_it_fails(rule),
        "working": working_command(rule),
        "lesson": rule.remedy.lesson,
        "scope": rule.scope.value,
        "project": rule.project,
        "seen_in": list(rule.seen_in),
        "origin": rule.origin.value,
        "source": rule.source,
        "verdict": rule.verdict.value,
        "proven": rule.proven,
        "r": rule.r,
        "c": rule.c,
        "d": rule.d,
        "used": rule.used,
        "failures": rule.failures,
        "held_back": rule.held_back,
        "guard": rule.guard.value,
        "not_guarding": why_no_gate(rule),
        "not_exported": _why_not(rule),
        "created": iso(rule.created_us),
        "last": iso(rule.last_us),
        "promoted": iso(rule.promoted_us),
        "shared": iso(rule.shared_us),
        "archived": iso(rule.archived_us),
    }


def _why_not(rule: Rule) -> str:
    project = Path(rule.project)
    root = project.parent if project.name == ".git" else project
    return why_not(rule, outside_of(str(root)))


def _show(arguments: argparse.Namespace) -> int:
    with open_rulebook() as rulebook:
        rule = find_rule(rulebook, arguments.rule)
        guarded = guarded_projects(rulebook.connection)
        agents = agents_by_rule(rulebook.connection).get(rule.id, [])
    if arguments.json:
        print_items([{**describe(rule), "agents": agents}], guarded_projects=guarded)
        return ExitCode.OK
    print(show_line(rule))
    for name, value in _details(rule, guarded, agents):
        print(f"  {name:12} {value}")
    return ExitCode.OK


def _details(
    rule: Rule, guarded: Mapping[str, Guard], agents: Sequence[str]
) -> Iterator[tuple[str, str]]:
    yield (
        "evidence",
        (
            f"failed again in {plural(rule.r, 'session')}, confirmed {plural(rule.c, 'time')},"
            f" contradicted {plural(rule.d, 'time')}, used {plural(rule.used, 'time')}"
        ),
    )
    yield "hinted", _where_hinted(rule)
    yield "guards", _how_it_guards(rule, guarded)
    yield "exported", _where_exported(rule)
    yield "seen in", ", ".join(one_line(project, 100) for project in rule.seen_in) or "-"
    said = f", {rule.verdict.value} by you" if rule.verdict.value else ""
    source = f" of {one_line(rule.source, 64)}" if rule.source else ""
    yield "origin", f"{rule.origin.value}{source}{said}"
    yield "met by", ", ".join(one_line(show_agent(agent), 40) for agent in agents) or "nobody"
    for name, time_us in (
        ("first seen", rule.created_us),
        ("last seen", rule.last_us),
        ("promoted", rule.promoted_us),
        ("shared", rule.shared_us),
        ("archived", rule.archived_us),
    ):
        if time_us is not None:
            yield name, clock(time_us)


def _where_hinted(rule: Rule) -> str:
    if rule.held_back:
        return f"never: {one_line(rule.held_back, 100)}"
    if rule.status in (Status.CANDIDATE, Status.ARCHIVED):
        reason = "nothing proves it" if rule.status is Status.CANDIDATE else "archived"
        if rule.is_quarantined:
            reason = "it was imported; say: flightrec rules approve"
        return f"no: {reason}"
    return "everywhere" if rule.scope is Scope.USER else "in its project"


def _where_exported(rule: Rule) -> str:
    reason = _why_not(rule)
    if reason:
        return f"no: {one_line(reason, 100)}"
    if rule.status in (Status.PROMOTED, Status.SHARED):
        return "to memory files of the projects that it was seen in"
    return "not before it is promoted (R ≥ 2 or C ≥ 3)"


def _how_it_guards(rule: Rule, guarded: Mapping[str, Guard]) -> str:
    """Return what the rule may do to an agent's commands, and why not yet."""
    homes = (rule.project,) if rule.scope is Scope.PROJECT else tuple(guarded)
    there = sorted({guarded[home].value for home in homes if home in guarded})
    if rule.guard is Guard.OFF or not (rule.guard or there):
        return "no" if rule.guard is Guard.UNSET else "no: switched off"
    said = rule.guard.value or f"{' or '.join(there)}, in guarded projects"
    reason = why_no_gate(rule)
    return f"{said}; not now: {one_line(reason, 100)}" if reason else said


def _guard(arguments: argparse.Namespace) -> int:
    if arguments.what:
        about, mode = _read_guard(arguments)
        if arguments.project:
            folder = str(Path(about or ".").resolve())
            request(find_paths(), "project_guard", cwd=folder, mode=mode)
        else:
            with open_rulebook() as rulebook:
                rule = find_rule(rulebook, about).id
            request(find_paths(), "rule_guard", rule=rule, mode=mode)
    _print_guards(as_json=arguments.json)
    return ExitCode.OK


def _read_guard(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the rule or folder (empty for this one) and the mode. Raises FlightrecError."""
    *about, word = arguments.what
    modes = {mode.value: mode.value for mode in Guard if mode}
    if not arguments.project:
        modes[DEFAULT] = Guard.UNSET.value
    if word not in modes or len(about) not in ((0, 1) if arguments.project else (1,)):
        raise FlightrecError(GUARD_USAGE, ExitCode.USAGE)
    if arguments.project and about and not Path(about[0]).is_dir():
        raise FlightrecError(f"no folder {one_line(about[0], 100)}")
    return (about[0] if about else ""), modes[word]


def _print_guards(*, as_json: bool) -> None:
    with open_rulebook() as rulebook:
        guarded = guarded_projects(rulebook.connection)
        rules = [rule for rule in rulebook.rules() if rule.guard]
    if as_json:
        print_items([describe(rule) for rule in rules], guarded_projects=guarded)
        return
    for project, mode in guarded.items():
        print(f"{mode:8} all proved rules in {one_line(project, 200)}")
    for rule in rules:
        print(f"{rule.guard:8} {rule.id}  {show_pair(rule)}")
        if rule.guard is not Guard.OFF and (reason := why_no_gate(rule)):
            print(f"{'':8} not now: {one_line(reason, 100)}")
    if not guarded and not rules:
        print("Nothing is guarded.")


def _brief(arguments: argparse.Namespace) -> int:
    place = find_place(str(Path(arguments.folder).resolve()))
    briefings = Briefings()
    with open_rulebook() as rulebook:
        briefings.update(rulebook.hint_rules())
    text = briefings.brief(place.project) if place.mine else ""
    print(text or "Nothing: no rule is promoted here.")
    return ExitCode.OK


def _decide(arguments: argparse.Namespace) -> int:
    with open_rulebook() as rulebook:
        ids = [find_rule(rulebook, asked).id for asked in arguments.rules]
    for rule_id in ids:
        request(find_paths(), arguments.verb, rule=rule_id, cwd=str(Path.cwd()))
    _print_changed(ids)
    return ExitCode.OK


def _edit(arguments: argparse.Namespace) -> int:
    with open_rulebook() as rulebook:
        rule = find_rule(rulebook, arguments.rule)
    answer = request(
        find_paths(),
        "rule_edit",
        rule=rule.id,
        working=arguments.working,
        cwd=str(Path.cwd()),
    )
    _print_changed([answer["rule"]])
    return ExitCode.OK


def _print_changed(ids: list[str]) -> None:
    with open_rulebook() as rulebook:
        for rule_id in ids:
            print(show_line(find_rule(rulebook, rule_id)))
