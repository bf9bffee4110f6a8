"""One settings file of an agent, with and without what we add to it. Pure: text in, text out.

What was added is noted as changes that can be taken back one by one, so that a file that nobody has
changed since becomes what it was to the byte. In one that somebody has changed, the parts find
what is theirs, and everything else stays.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from flightrec.edited_text import Change, apply
from flightrec.errors import FlightrecError
from flightrec.hook_clients import HookFile, Syntax
from flightrec.hook_parts import Default, Setup
from flightrec.json_edit import JsonText
from flightrec.toml_edit import TomlText

PLUGIN_MARK = "// Written by flightrec;"

CODEX_STATE = ("hooks", "state")
"""The table in which Codex notes which hooks it trusts."""

_BOM = b"\xef\xbb\xbf"


class Addition(msgspec.Struct):
    """What was added to a file: its digest afterwards, and the changes that lead back.

    ``created``: no file was there; ``folders`` were made for it, the outermost first. ``defaults``
    are settings that nobody had set, ``trusted`` names of hooks that Codex was made to trust.
    ``excluded``: git was told not to see the file.
    """

    digest: str
    undo: list[Change] = []
    created: bool = False
    folders: list[str] = []
    defaults: list[str] = []
    trusted: list[str] = []
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """What goes into a file: for which agent, and ``plugin``, the text of a whole program."""

    agent: str
    setup: Setup
    plugin: str = ""


def digest(data: bytes) -> str:
    """Return what tells whether a file was changed."""
    return hashlib.sha256(data).hexdigest()


def with_parts(
    data: bytes | None, file: HookFile, wanted: Wanted, addition: Addition | None
) -> tuple[bytes, Addition]:
    """Return the file with our parts, and what they are. What is there already stays as it is.

    Raises FlightrecError where the file cannot be understood, or is somebody else's plugin.
    """
    if file.syntax is Syntax.PLUGIN:
        if data is not None and not is_plugin(data):
            raise FlightrecError("is no file of flightrec's; left alone")
        made = wanted.plugin.encode()
        return made, Addition(digest(made), created=True)
    if data is not None and has_parts(data, file, wanted):
        return data, addition or Addition(digest(data))
    base = without_parts(data, file, addition)
    mark, text = _decode(base)
    document = _open(text, file.syntax)
    defaults = [
        part.name
        for part in file.parts
        if isinstance(part, Default) and isinstance(document, JsonText)
        if document.get([part.name]) is None
    ]
    for part in file.parts:
        part.add(document, wanted.agent, wanted.setup)  # type: ignore[arg-type] # by the table
    made = mark + document.text.encode()
    created = base is None
    return made, Addition(digest(made), document.undo, created, defaults=defaults)


def without_parts(data: bytes | None, file: HookFile, addition: Addition | None) -> bytes | None:
    """Return the file as it is without us; None for no file. Raises FlightrecError."""
    if data is None:
        return None
    if file.syntax is Syntax.PLUGIN:
        return None if is_plugin(data) else data
    mark, text = _decode(data)
    if addition is not None and addition.digest == digest(data):
        rest = apply(text, addition.undo)
        return None if addition.created else mark + rest.encode()
    document = _open(text, file.syntax)
    before = document.text
    noted = addition.defaults if addition is not None else []
    for part in file.parts:
        if not isinstance(part, Default) or part.name in noted:
            part.remove(document)  # type: ignore[arg-type] # by the table
    if isinstance(document, TomlText) and addition is not None:
        _remove_trust(document, addition.trusted)
    if document.text == before:
        return data
    is_empty = document.text.strip() in ("", "{}")
    if addition is not None and addition.created and is_empty:
        return None
    return mark + document.text.encode()


def _remove_trust(document: TomlText, names: Sequence[str]) -> None:
    """Take out what Codex has noted of hooks that are gone."""
    for name in names:
        document.remove_table((*CODEX_STATE, name))
    if names and document.get(CODEX_STATE[:-1], CODEX_STATE[-1]) == {}:
        document.remove_table(CODEX_STATE)


def has_parts(data: bytes, file: HookFile, wanted: Wanted) -> bool:
    """Whether all is there as this release writes it. Raises FlightrecError."""
    if file.syntax is Syntax.PLUGIN:
        return data == wanted.plugin.encode()
    document = _open(_decode(data)[1], file.syntax)
    return all(
        part.is_in(document, wanted.agent, wanted.setup)  # type: ignore[arg-type] # by the table
        for part in file.parts
    )


def has_any(data: bytes, file: HookFile) -> bool:
    """Whether anything of ours is there, of whatever release. Raises FlightrecError."""
    if file.syntax is Syntax.PLUGIN:
        return is_plugin(data)
    document = _open(_decode(data)[1], file.syntax)
    return any(part.has_any(document) for part in file.parts)  # type: ignore[arg-type] # as above


def is_plugin(data: bytes) -> bool:
    """Whether this program is ours."""
    return data.startswith(PLUGIN_MARK.encode())


def plugin_text(template: str, values: Mapping[str, str]) -> str:
    """Return a plugin with its values: ``"@NAME@"`` in the template is a string."""
    for name, value in values.items():
        template = template.replace(f'"@{name}@"', json.dumps(value))
    return template


def _decode(data: bytes | None) -> tuple[bytes, str]:
    """Return a byte order mark, if there is one, and the text behind it."""
    data = data or b""
    mark = _BOM if data.startswith(_BOM) else b""
    try:
        return mark, data.removeprefix(mark).decode("utf-8")
    except UnicodeDecodeError:
        raise FlightrecError("is no UTF-8 text; left alone") from None


def _open(text: str, syntax: Syntax) -> JsonText | TomlText:
    if syntax is Syntax.TOML:
        return TomlText(text)
    return JsonText(text, comments=syntax is Syntax.JSON_WITH_COMMENTS)
