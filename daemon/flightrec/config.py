"""The person's settings: ``~/.config/flightrec/config.toml``, checked as a whole when it is read.

A file with a mistake is refused with one line that names the key. The daemon then records nothing
rather than something that the person had excluded.
"""

import enum
import functools
import re
import tomllib
from collections.abc import Sequence
from fnmatch import translate
from pathlib import Path
from typing import Annotated

import msgspec

from flightrec.errors import FlightrecError

Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Minutes = Annotated[float, msgspec.Meta(gt=0, le=527_040)]
Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class Level(enum.StrEnum):
    """How much of a command is kept: its program, its text, or its text and the error's tail."""

    METADATA = "metadata"
    COMMANDS = "commands"
    EVIDENCE = "evidence"


class Capture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is recorded. Without ``tail`` shells keep out of the proxy, which reads the terminal."""

    level: Level = Level.EVIDENCE
    tail: bool = True


class Ignore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is never recorded: shell patterns for whole command lines and for directories.

    A directory stands for itself and all below it; ``~`` is the home.
    """

    commands: tuple[Pattern, ...] = ()
    directories: tuple[Pattern, ...] = ()


class Redaction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The person's own regular expressions: texts that are no secret, and texts that are one."""

    allow: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much evidence moves a rule from one status to the next."""

    promote_recurrences: Count = 2
    promote_confirmations: Count = 3
    archive_contradictions: Count = 3
    share_projects: Count = 2


class Hints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a hint is shown.

    ``hold`` asks for a key before a command runs that is hinted at: always, or by these rules.
    """

    enabled: bool = True
    hold: bool | tuple[Pattern, ...] = False
    repeat_after_minutes: Minutes = 60


class Export(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes into the memory files of agents."""

    on_promotion: bool = True


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much is kept: the oldest runs go first, rules stay. 0 days is without limit."""

    megabytes: Annotated[int, msgspec.Meta(ge=10, le=100_000)] = 250
    days: Annotated[int, msgspec.Meta(ge=0, le=36_500)] = 0


class Shims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Programs with a stand-in in an agent's run, beside or out of the usual ones."""

    also: tuple[Pattern, ...] = ()
    never: tuple[Pattern, ...] = ()


class Agents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Agents in ``flightrec run``: whether they are given hooks for that run, and ``--preload``."""

    hooks: bool = True
    preload: bool = False


class Daemon(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The background process. It leaves when no shell is connected for ``idle_exit_minutes``."""

    idle_exit_minutes: Minutes = 30
    check_seconds: Annotated[float, msgspec.Meta(ge=0.05, le=60)] = 10
    reflect_minutes: Minutes = 60


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file; what it does not say is as here."""

    capture: Capture = Capture()
    ignore: Ignore = Ignore()
    redaction: Redaction = Redaction()
    rules: Rules = Rules()
    hints: Hints = Hints()
    export: Export = Export()
    retention: Retention = Retention()
    shims: Shims = Shims()
    agents: Agents = Agents()
    daemon: Daemon = Daemon()


def load_settings(path: Path) -> Settings:
    """Return the settings in this file; all defaults where there is none.

    Raises FlightrecError with one line that names the file, the key and what it may be.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise FlightrecError(f"cannot read {path}: {reason}") from None
    return parse_settings(text, str(path))


def parse_settings(text: str, name: str) -> Settings:
    """Return the settings that ``text`` (TOML) holds. Raises FlightrecError."""
    try:
        settings = msgspec.convert(tomllib.loads(text), Settings)
    except tomllib.TOMLDecodeError as error:
        raise FlightrecError(f"{name} is no TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise FlightrecError(f"{name}: {_explain(str(error))}") from None
    for key in ("allow", "deny"):
        _check_expressions(getattr(settings.redaction, key), f"{name}: redaction.{key}")
    return settings


_PLACE = re.compile(r" - at `\$\.?([^`]*)`$")

_PLAINER = (
    (re.compile(r"Object contains unknown field `(.*)`"), r"unknown key \1"),
    (re.compile(r"Invalid enum value (.*)"), rf"\1 is none of: {', '.join(Level)}"),
    (re.compile(r"`object`"), "a table"),
)


def _explain(message: str) -> str:
    """Return ``key: what is wrong`` for an error of msgspec, which puts the place last."""
    place = _PLACE.search(message)
    if place:
        message = f"{place[1]}: {message[: place.start()]}"
    for theirs, ours in _PLAINER:
        message = theirs.sub(ours, message)
    return message


def _check_expressions(expressions: Sequence[str], where: str) -> None:
    """Refuse here, where a line can say so, what the redactor could not take."""
    if not expressions:
        return
    from flightrec.secret_patterns import compile_patterns  # noqa: PLC0415 - few people write any

    try:
        compile_patterns(expressions)
    except FlightrecError as error:
        raise FlightrecError(f"{where}: {error}") from None


class IgnoreFilter:
    """Tells commands and directories that the person does not want recorded."""

    def __init__(self, ignore: Ignore, home: str) -> None:
        self._commands = _union(ignore.commands)
        folders = [_expand(pattern, home) for pattern in ignore.directories]
        self._directories = _union([p for folder in folders for p in (folder, f"{folder}/*")])

    def ignores(self, command: str, cwd: str) -> bool:
        """Whether this command line, in this directory, is to leave no trace."""
        return bool(
            (self._commands and self._commands.match(command.strip()))
            or (self._directories and self._directories.match(cwd))
        )


def _expand(pattern: str, home: str) -> str:
    if pattern == "~" or pattern.startswith("~/"):
        pattern = home + pattern[1:]
    return pattern.rstrip("/") or "/"


@functools.lru_cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL)


def _union(patterns: Sequence[str]) -> re.Pattern[str] | None:
    if not patterns:
        return None
    return _compiled("|".join(translate(pattern) for pattern in patterns))
