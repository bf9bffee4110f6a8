"""What a command installs, and whether that is what was missing."""

import re
from collections.abc import Sequence

from flightrec.invocation import Invocation, base_name
from flightrec.remedy_tables import INSTALLERS, INSTALLING, PROGRAM_OF_PACKAGE

_VERSION_SUFFIX = re.compile(r"(?:[=<>~!@^\[].*|:[a-z0-9]+)$")
_SEPARATORS = re.compile(r"[-_./\s]+")
_DECORATION = re.compile(r"^lib(?=\w{3})|\.(?:h|so|hpp)\b.*$")
ALIKE = 4
"""Letters at the beginning that two names of one thing have in common."""

_VALUED = frozenset(("-r", "--requirement", "-c", "--constraint", "-e", "--editable", "-t", "-f"))


def installs(invocation: Invocation) -> bool:
    """Whether a command installs something."""
    if invocation.name not in INSTALLERS:
        return False
    if not invocation.words:
        return invocation.name in ("yarn", "bundle")
    return any(INSTALLING.match(word) for word in invocation.words[:3])


def packages(invocation: Invocation) -> list[str]:
    """Return what is installed by name; empty where it is what a project's own list holds."""
    found = []
    words = iter(invocation.words)
    for word in words:
        if word in _VALUED:
            next(words, None)
        elif not word.startswith("-") and not INSTALLING.match(word) and word != ".":
            found.append(word)
    return found


def is_installed_by(named: Sequence[str], invocation: Invocation) -> bool:
    """Whether one of the packages is, by its name, one of the things that an error names."""
    bare_packages = [_bare(package) for package in packages(invocation)]
    return any(_is_same(wanted, p) for n in named for wanted in _forms(n) for p in bare_packages)


def begins_alike(named: Sequence[str], invocation: Invocation) -> bool:
    """Whether a package's name begins as one of the things does that an error names.

    What is installed from a folder or an address may have any name.
    """
    beginnings = {_bare(name)[:ALIKE] for name in named}
    return any(
        _bare(package)[:ALIKE] in beginnings or package.startswith((".", "/")) or ":" in package
        for package in packages(invocation)
    )


def _forms(name: str) -> set[str]:
    """Return the names under which a missing thing may be installed."""
    first = re.split(r"[./:]", name)[0]
    forms = {_bare(name), _bare(first), _bare(base_name(name))}
    for known in (name, first):
        forms |= {_bare(p) for p in PROGRAM_OF_PACKAGE.get(known.lower(), "").split()}
    return forms - {""}


def _is_same(wanted: str, package: str) -> bool:
    shorter, longer = sorted((wanted, package), key=len)
    return wanted == package or (len(shorter) > 2 and shorter in longer)


def _bare(name: str) -> str:
    """Return a package's or module's name without version, extras, separators and case."""
    name = _VERSION_SUFFIX.sub("", name.removeprefix("@")).lower()
    return _SEPARATORS.sub("", _DECORATION.sub("", name))
