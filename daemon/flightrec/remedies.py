"""Whether something that ran between a failure and a pass had to do with the error.

Only a run that the error itself suggests or names, or that is of the kind that mends this kind of
error, counts; whatever else happened in between is no remedy.
"""

import os
import re
from dataclasses import dataclass

from flightrec.attempt import stands_in
from flightrec.classify import Failure
from flightrec.failure_kinds import K
from flightrec.ingest import CommandRun
from flightrec.installs import begins_alike, installs, is_installed_by, packages
from flightrec.invocation import Invocation, base_name, invocations, word_set
from flightrec.remedy_tables import (
    ACTIVATING,
    BUILDING,
    INSTALLERS,
    MENDING_RUNS,
    READ_ONLY,
    SETTING_UP,
    VARIABLES_THAT_MEND,
)
from flightrec.shell_words import SimpleCommand
from flightrec.signature import plain

NONE, BY_KIND, BY_WORLD, BY_NAME = range(4)
"""How closely a run in between has to do with an error.

Not at all; it is of a kind that often mends such errors, which counts only where nothing else
happened; it is what mends this kind of error in this tool's world; the error names or proposes it.
"""

_ACTIVATED_KINDS = frozenset(
    (K.COMMAND_NOT_FOUND, K.MISSING_VARIABLE, K.API_KEY, K.MISSING_MODULE, K.MANAGED_ENVIRONMENT,
     K.WRONG_VERSION, K.AUTHENTICATION, K.MISSING_LIBRARY, K.NOT_RUNNING, K.NOT_INITIALISED)
)  # fmt: skip
_VARIABLE_KINDS = frozenset((K.MISSING_VARIABLE, K.API_KEY, K.AUTHENTICATION))
_INSTALLED_KINDS = frozenset(
    (K.COMMAND_NOT_FOUND, K.MISSING_MODULE, K.MISSING_LIBRARY, K.MISSING_FILE, K.WRONG_VERSION,
     K.UNKNOWN_SUBCOMMAND, K.UNKNOWN_OPTION, K.ENCODING)
)  # fmt: skip
_CREATED_KINDS = frozenset(
    (K.MISSING_FILE, K.MISSING_MANIFEST, K.NOT_A_DIRECTORY, K.MISSING_TARGET, K.PERMISSION,
     K.NOT_EXECUTABLE, K.MISSING_MODULE, K.MISSING_LIBRARY)
)  # fmt: skip
_BUILT_KINDS = frozenset((K.MISSING_FILE, K.MISSING_MODULE, K.COMMAND_NOT_FOUND, K.MISSING_LIBRARY))
_LOOSE_KINDS = frozenset(
    (K.MISSING_FILE, K.MISSING_MANIFEST, K.MISSING_TARGET, K.MISSING_PACKAGE, K.LOCKED,
     K.ALREADY_EXISTS, K.PERMISSION, K.DEPENDENCIES, K.NOT_INITIALISED, K.MISSING_LIBRARY)
)  # fmt: skip
"""Kinds that so many runs mend that one of them alone says little."""

_CREATORS = word_set(
    "cmake meson mkdir touch cp mv ln install tee unzip tar git curl wget mkfifo mktemp truncate"
    " rsync scp openssl ssh-keygen sqlite3 python python3 gunzip 7z cpio dd gh svn hg zip gzip"
    " bzip2 xz zstd ar"
)
_IS_MISSING = re.compile(
    r"(?i)missing|\bno\b|not (?:set|provided|supplied|found|logged)|required|unable to locate|must"
    r"|without|unauthori|failed to sign"
)
_DOTENV = re.compile(r"\.env\b")


@dataclass(frozen=True, slots=True)
class Step:
    """One segment that ended well between a failure and a later pass.

    ``text`` are its words. ``background``: it was left running. ``repeated``: the failed line had
    done the same already.
    """

    run: CommandRun
    segment: SimpleCommand
    invocation: Invocation
    directory: str
    text: str
    background: bool = False
    repeated: bool = False

    @property
    def only_looks(self) -> bool:
        """Whether it changes nothing."""
        return self.invocation.asks_information or (
            READ_ONLY.match(self.text) is not None and not _written_files(self)
        )

    @property
    def changes_environment(self) -> bool:
        """Whether it changes the shell's own variables."""
        if self.invocation.program in ("export", "set", "declare", "typeset"):
            return True
        if not self.invocation.program:
            return bool(self.invocation.variables)
        return ACTIVATING.match(self.text) is not None


def closeness(failure: Failure, step: Step, output: str) -> int:
    """Return how closely a step has to do with a failure; ``output`` is the failure's, plain."""
    if step.changes_environment:
        return _environment_closeness(failure, step, output)
    if step.only_looks:
        return NONE
    if _is_suggested(step, output):
        return BY_NAME
    return max(
        _install_closeness(failure, step, output),
        _creation_closeness(failure, step),
        _kind_closeness(failure, step),
    )


def variable_mends(failure: Failure, name: str, output: str) -> int:
    """Return how closely a variable that was set has to do with a failure."""
    if name.startswith("$("):
        return BY_WORLD if failure.kind in _ACTIVATED_KINDS else NONE
    if name in failure.named or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", output):
        return BY_NAME
    fitting = VARIABLES_THAT_MEND.get(failure.kind)
    if fitting is None or not fitting.match(name):
        return NONE
    if failure.kind is K.AUTHENTICATION and not _IS_MISSING.search(output):
        return NONE  # a wrong secret: its value is no lesson
    return BY_WORLD


def plain_output(failure: Failure) -> str:
    """Return what the failed run printed, as a person sees it."""
    return plain(failure.run.tail)


def _environment_closeness(failure: Failure, step: Step, output: str) -> int:
    names = _variables_set(step)
    if names:
        return max(variable_mends(failure, name, output) for name in names)
    if _DOTENV.search(step.text) and failure.kind not in _VARIABLE_KINDS:
        return NONE  # settings of a project bring no program
    return BY_WORLD if failure.kind in _ACTIVATED_KINDS else NONE


def _variables_set(step: Step) -> list[str]:
    """Return the variables that a step names; none for ``source FILE`` and the like."""
    names = list(step.invocation.variables)
    if step.invocation.program in ("export", "declare", "typeset", "set"):
        for word in step.invocation.words:
            name, equals, _value = word.partition("=")
            if equals and name.isidentifier():
                names.append(name)
    return names


def _is_suggested(step: Step, output: str) -> bool:
    """Whether the error's text tells to run this: the command, and one of its own words if any."""
    invocation = step.invocation
    words = [word for word in invocation.words if not word.startswith("-")]
    verb = invocation.subcommand or (words[0] if words else "")
    first = invocation.words[0] if invocation.words else ""
    if len(first) > 3 and first.startswith("-") and stands_in(f"{invocation.name} {first}", output):
        return True
    if not verb or not stands_in(f"{invocation.name} {verb}", output):
        return False
    rest = [word for word in words if word not in verb.split()]
    return not rest or any(len(word) > 2 and word in output for word in rest)


def _install_closeness(failure: Failure, step: Step, output: str) -> int:
    if failure.kind not in _INSTALLED_KINDS:
        return NONE
    if not installs(step.invocation):
        return _set_up_closeness(failure, step)
    if is_installed_by(failure.named, step.invocation) or any(
        len(package) > 2 and stands_in(package, output) for package in packages(step.invocation)
    ):
        return BY_NAME
    if failure.kind is K.UNKNOWN_OPTION:  # it may be a plugin's
        tool = invocations(failure.line)[failure.segment].name
        return BY_KIND if is_installed_by((tool,), step.invocation) else NONE
    elsewhere = failure.kind is K.MISSING_FILE and failure.domain != "node"
    if failure.kind is K.UNKNOWN_SUBCOMMAND or elsewhere:
        return NONE
    return _world_closeness(failure, step)


def _world_closeness(failure: Failure, step: Step) -> int:
    """Return how closely an installation under another name has to do with what is missing."""
    world = INSTALLERS[step.invocation.name]
    if packages(step.invocation):
        # A system's packages have names of their own; a module's package seldom has another one.
        akin = world == failure.domain and begins_alike(failure.named, step.invocation)
        return BY_KIND if akin or world == "system" else NONE
    return BY_WORLD if world in ("", failure.domain) or not failure.domain else NONE


def _set_up_closeness(failure: Failure, step: Step) -> int:
    """Return the same for a project's own way to install (``make deps``, ``./setup.sh``)."""
    if failure.kind in (K.UNKNOWN_SUBCOMMAND, K.UNKNOWN_OPTION):
        return NONE
    wanted = " ".join((step.invocation.program, *step.invocation.operands[:1]))
    return BY_KIND if SETTING_UP.search(wanted) else NONE


def _creation_closeness(failure: Failure, step: Step) -> int:
    """Return how closely a step makes, or makes usable, the path that an error names."""
    if failure.kind not in _CREATED_KINDS:
        return NONE
    if step.invocation.code and step.segment.redirections:
        return NONE  # a file written by hand: an edit
    if BUILDING.match(step.text) and failure.kind in _BUILT_KINDS:
        return BY_WORLD if failure.kind is K.MISSING_FILE else BY_KIND
    frees = failure.kind in (K.PERMISSION, K.NOT_EXECUTABLE)
    creates = step.invocation.name in _CREATORS or frees
    paths = [*(step.invocation.words if creates else ()), *_written_files(step)]
    operands = _operands(failure)
    if any(_leads_to(p, n) for p in paths for n in failure.named or operands):
        return BY_NAME
    return BY_WORLD if any(_leads_to(p, n) for p in paths for n in operands) else NONE


def _written_files(step: Step) -> list[str]:
    """Return the files that a step's redirections write."""
    targets = (r.target.text for r in step.segment.redirections if r.operator in (">", ">>", ">|"))
    return [target for target in targets if not target.startswith("/dev/")]


def _operands(failure: Failure) -> tuple[str, ...]:
    segment = failure.line.segments[failure.segment]
    return tuple(word.text for word in segment.arguments if not word.text.startswith("-"))


def _leads_to(made: str, missing: str) -> bool:
    """Whether a path that was made is the missing one, lies in it, or is a folder above it."""
    made, missing = (os.path.normpath(p) for p in (made.partition("=")[2] or made, missing))
    if made in (".", "/", "") or made.startswith("-"):
        return False
    if made == missing or missing.startswith(f"{made}/") or missing.endswith(f"/{made}"):
        return True
    if f"/{made}/" in missing:
        return True
    return made.startswith(f"{missing}/") or base_name(made) == base_name(missing)


def _kind_closeness(failure: Failure, step: Step) -> int:
    pattern = MENDING_RUNS.get(failure.kind)
    if pattern is None or not pattern.match(step.text):
        return _server_closeness(failure, step)
    if failure.kind in (K.CONNECTION, K.NOT_RUNNING) and step.repeated:
        return NONE  # it was started before the failure too: not what was missing
    if failure.kind not in _LOOSE_KINDS:
        return BY_WORLD
    words = set(step.invocation.words)
    return BY_NAME if words.intersection(failure.named) else BY_KIND


def _server_closeness(failure: Failure, step: Step) -> int:
    """Return it for a program left running, which may be the server that did not answer."""
    if failure.kind in (K.CONNECTION, K.NOT_RUNNING) and step.background and not step.repeated:
        return BY_KIND
    return NONE
