"""Did something that ran between a failure and a pass have to do with the error?

Only a run that the error itself suggests or names, or that is of the kind that mends this kind of
error, counts; whatever else happened in between is no remedy.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from flightrec.classify import Failure
from flightrec.failure_kinds import K
from flightrec.ingest import CommandRun
from flightrec.invocation import Invocation
from flightrec.remedy_tables import (
    ACTIVATING,
    BUILDING,
    INSTALLERS,
    INSTALLING,
    MENDING_RUNS,
    PROGRAM_OF_PACKAGE,
    READ_ONLY,
    SETTING_UP,
    VARIABLES_THAT_MEND,
)
from flightrec.shell_words import SimpleCommand
from flightrec.signature import plain

NONE, BY_KIND, BY_WORLD, BY_NAME = range(4)
"""How closely a run in between has to do with an error: not at all … the error names it."""

_ACTIVATED_KINDS = frozenset(
    (K.COMMAND_NOT_FOUND, K.MISSING_VARIABLE, K.API_KEY, K.MISSING_MODULE, K.MANAGED_ENVIRONMENT,
     K.WRONG_VERSION, K.AUTHENTICATION, K.MISSING_LIBRARY, K.NOT_RUNNING)
)  # fmt: skip
_INSTALLED_KINDS = frozenset(
    (K.COMMAND_NOT_FOUND, K.MISSING_MODULE, K.MISSING_LIBRARY, K.MISSING_FILE, K.MISSING_PACKAGE,
     K.UNKNOWN_SUBCOMMAND, K.WRONG_VERSION, K.ENCODING)
)  # fmt: skip
_BUILT_KINDS = frozenset((K.MISSING_FILE, K.MISSING_MODULE, K.COMMAND_NOT_FOUND, K.MISSING_LIBRARY))
_CREATORS = frozenset(
    "cmake meson mkdir touch cp mv ln install tee unzip tar git curl wget mkfifo mktemp truncate rsync scp"
    " openssl ssh-keygen sqlite3 python python3 gunzip 7z cpio dd gh svn hg".split()
)
_VERSION_SUFFIX = re.compile(r"(?:[=<>~!@^\[].*|:[a-z0-9]+)$")
_SEPARATORS = re.compile(r"[-_./\s]+")
_PATH_VARIABLES = frozenset(("PATH", "path", "fpath"))


@dataclass(frozen=True, slots=True)
class Step:
    """One segment that ended well between a failure and a later pass."""

    run: CommandRun
    segment: SimpleCommand
    invocation: Invocation
    directory: str
    text: str
    background: bool = False
    repeated: bool = False


def closeness(failure: Failure, step: Step, output: str) -> int:
    """Return how closely a step has to do with a failure; ``output`` is the failure's, plain."""
    if changes_environment(step):
        return _environment_closeness(failure, step, output)
    if READ_ONLY.match(step.text) and not step.segment.redirections:
        return NONE
    if step.invocation.asks_information:
        return NONE
    if is_suggested(step, output):
        return BY_NAME
    return max(
        _install_closeness(failure, step),
        _creation_closeness(failure, step),
        _kind_closeness(failure, step),
    )


def changes_environment(step: Step) -> bool:
    """Whether a step changes the shell's own variables."""
    if step.invocation.program in ("export", "set", "declare", "typeset"):
        return True
    if not step.invocation.program:
        return bool(step.invocation.variables)
    return bool(ACTIVATING.match(step.text))


def variable_mends(failure: Failure, name: str, output: str) -> int:
    """Return how closely a variable that was set has to do with a failure."""
    if name.startswith("$("):
        return BY_WORLD if failure.kind in _ACTIVATED_KINDS else NONE
    if name in failure.named or re.search(rf"(?<![\w]){re.escape(name)}(?!\w)", output):
        return BY_NAME
    fitting = VARIABLES_THAT_MEND.get(failure.kind)
    return BY_WORLD if fitting is not None and fitting.match(name) else NONE


def _environment_closeness(failure: Failure, step: Step, output: str) -> int:
    names = _variables_set(step)
    if names:
        return max(variable_mends(failure, name, output) for name in names)
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


def is_suggested(step: Step, output: str) -> bool:
    """Whether the error's text tells to run this.

    Its program and first word stand there together, or a word of it does that is no everyday word.
    """
    invocation = step.invocation
    words = [w for w in invocation.words if not w.startswith("-")]
    if not words or invocation.program in ("git",) and words[0] in ("status", "help", "commit"):
        return False
    lowered = output.lower()
    if invocation.subcommand:
        phrase = f"{invocation.name} {invocation.subcommand}".lower()
    else:
        phrase = f"{invocation.name} {words[0]}".lower()
    if _stands_in(phrase, lowered):
        return _is_particular(invocation)
    return any(
        re.fullmatch(r"[a-z]\w+(?:\.\w+)+", w) is not None and _stands_in(w.lower(), lowered)
        for w in words[1:]
        if invocation.subcommand == "config"
    )


def _is_particular(invocation: Invocation) -> bool:
    """Whether a suggested command does something, beyond being the tool that failed."""
    return bool(invocation.subcommand) or len(invocation.words) > 0


def _stands_in(phrase: str, text: str) -> bool:
    position = text.find(phrase)
    while position >= 0:
        end = position + len(phrase)
        before = text[position - 1 : position]
        after = text[end : end + 1]
        if not (before.isalnum() or before in ("-", "_") and before) and not after.isalnum():
            return True
        position = text.find(phrase, position + 1)
    return False


def _install_closeness(failure: Failure, step: Step) -> int:
    if failure.kind not in _INSTALLED_KINDS:
        return NONE
    invocation = step.invocation
    world = INSTALLERS.get(invocation.name)
    if world is None or not _installs(invocation):
        sets_up = SETTING_UP.search(" ".join((invocation.program, *invocation.operands[:1])))
        return BY_KIND if sets_up and failure.kind is not K.MISSING_PACKAGE else NONE
    if failure.kind is K.MISSING_FILE and failure.domain not in ("node", world or "-"):
        return BY_NAME if _names_match(failure.named, step) else NONE
    if failure.kind is K.UNKNOWN_SUBCOMMAND and failure.domain in ("task", "script"):
        return NONE
    if _names_match(failure.named, step):
        return BY_NAME
    same_world = not failure.domain or world in ("", failure.domain)
    if failure.domain in ("shim", "system", "linker", "interpreter"):
        same_world = True
    if not same_world:
        return NONE
    return BY_KIND if _packages(step) else BY_WORLD


def _installs(invocation: Invocation) -> bool:
    if not invocation.words:
        return invocation.name in ("yarn", "bundle")
    return any(INSTALLING.match(word) for word in invocation.words[:3])


def _packages(step: Step) -> list[str]:
    """Return what a step installs by name; empty where it installs what a project lists."""
    found = []
    words = iter(step.invocation.words)
    for word in words:
        if word in ("-r", "--requirement", "-c", "-e", "--editable"):
            next(words, None)
        elif not word.startswith("-") and not INSTALLING.match(word) and word != ".":
            found.append(word)
    return found


def _names_match(named: Sequence[str], step: Step) -> bool:
    packages = [_bare(package) for package in _packages(step)]
    for name in named:
        bare = _bare(name)
        wanted = {bare, _bare(re.split(r"[./:]", name)[0]), _bare(os.path.basename(name))}
        wanted |= {_bare(PROGRAM_OF_PACKAGE[n.lower()]) for n in (name, name.split(".")[0])
                   if n.lower() in PROGRAM_OF_PACKAGE}  # fmt: skip
        for package in packages:
            if any(len(w) > 1 and (w == package or _contains(package, w)) for w in wanted if w):
                return True
    return False


def _contains(package: str, name: str) -> bool:
    shorter, longer = sorted((package, name), key=len)
    return len(shorter) > 2 and shorter in longer


def _bare(name: str) -> str:
    """Return a package's or module's name without version, extras, separators and case."""
    name = _VERSION_SUFFIX.sub("", name.removeprefix("@")).lower()
    name = re.sub(r"^lib(?=\w{3})|\.(?:h|so|hpp)\b.*$", "", name)
    return _SEPARATORS.sub("", name)


def _creation_closeness(failure: Failure, step: Step) -> int:
    """Return how closely a step makes, or makes usable, the path that an error names."""
    if failure.kind not in (
        K.MISSING_FILE, K.MISSING_MANIFEST, K.NOT_A_DIRECTORY, K.MISSING_TARGET, K.PERMISSION,
        K.NOT_EXECUTABLE, K.MISSING_MODULE,
    ):  # fmt: skip
        return NONE
    if step.invocation.code and step.segment.redirections:
        return NONE  # a file written by hand: an edit
    if BUILDING.match(step.text) and failure.kind in _BUILT_KINDS:
        return BY_WORLD if failure.kind is K.MISSING_FILE else BY_KIND
    creates = step.invocation.name in _CREATORS or failure.kind in (K.PERMISSION, K.NOT_EXECUTABLE)
    paths = list(step.invocation.words) if creates else []
    paths += [r.target.text for r in step.segment.redirections if r.operator in (">", ">>")]
    operands = _operands(failure)
    if any(_leads_to(p, n) for p in paths for n in failure.named or operands):
        return BY_NAME
    return BY_WORLD if any(_leads_to(p, n) for p in paths for n in operands) else NONE


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
    if f"/{made}/" in missing and "/" in missing:
        return True
    return made.startswith(f"{missing}/") or os.path.basename(made) == os.path.basename(missing)


def _kind_closeness(failure: Failure, step: Step) -> int:
    pattern = MENDING_RUNS.get(failure.kind)
    if pattern is None or not pattern.match(step.text):
        return _server_closeness(failure, step)
    if failure.kind in (K.CONNECTION, K.NOT_RUNNING) and step.repeated:
        return NONE  # it was started before the failure too: not what was missing
    return BY_WORLD


def _server_closeness(failure: Failure, step: Step) -> int:
    """A program left running in the background may be the server that did not answer."""
    if failure.kind in (K.CONNECTION, K.NOT_RUNNING) and step.background and not step.repeated:
        return BY_KIND
    return NONE


def plain_output(failure: Failure) -> str:
    """Return what the failed run printed, as a person sees it."""
    return plain(failure.run.tail)
