"""Whether what made a command fail is visibly mended by now: nothing is to be hinted then.

Asked when a hint would be due, so that it costs a look at a few names, and only there where the
command would run. What cannot be seen from outside counts as not mended.
"""

from pathlib import Path

from flightrec.failure_kinds import K
from flightrec.invocation import Invocation, invocations, word_set
from flightrec.rules import Remedy, Trigger
from flightrec.shell_words import parse

_NODE_INSTALLERS = word_set("npm pnpm yarn bun")
_RUNNING_OTHERS = word_set(
    "bun cargo composer gradle just make mvn ninja npm pnpm poetry rake task tox yarn bash sh zsh"
)
_INSTALLING = word_set("i install ci add")
_MISSING_KINDS = frozenset((K.COMMAND_NOT_FOUND, K.MISSING_MODULE))


def is_mended(trigger: Trigger, remedy: Remedy, folder: str, virtual_env: str | None) -> bool:
    """Whether the remedy has been applied already to ``folder``, or in this shell.

    ``virtual_env`` is the shell's VIRTUAL_ENV.
    """
    if trigger.kind == K.MANAGED_ENVIRONMENT and virtual_env:
        return True
    steps = [step for text in remedy.before for step in invocations(parse(text))]
    return bool(steps) and all(_is_done(step, trigger, folder, virtual_env) for step in steps)


def may_run_others(program: str) -> bool:
    """Whether "command not found" may have been said of a program that this one was to run."""
    return "/" in program or program in _RUNNING_OTHERS


def _is_done(step: Invocation, trigger: Trigger, folder: str, virtual_env: str | None) -> bool:
    if step.program in ("source", "."):
        return _is_active(step, folder, virtual_env)
    if step.name in _NODE_INSTALLERS and trigger.kind in _MISSING_KINDS:
        return _has_modules(step, folder)
    if step.name == "mkdir" and trigger.kind == K.MISSING_FILE:
        return all(Path(folder, word).is_dir() for word in step.operands)
    return False


def _is_active(step: Invocation, folder: str, virtual_env: str | None) -> bool:
    """Whether ``source ENV/bin/activate`` was done: that environment is this shell's."""
    script = step.words[0] if step.words else ""
    environment, bin_, _name = script.rpartition("/bin/activate")
    if not virtual_env or not bin_:
        return False
    return Path(folder, environment).resolve() == Path(virtual_env).resolve()


def _has_modules(step: Invocation, folder: str) -> bool:
    """Whether the folder has the modules that are to be installed; any where none is named."""
    packages = [word for word in step.words if word not in _INSTALLING and not word.startswith("-")]
    if not step.words and step.name != "yarn":
        return False
    names = [package.rpartition("@")[0] or package for package in packages] or ["."]
    return all(Path(folder, "node_modules", name).is_dir() for name in names)
