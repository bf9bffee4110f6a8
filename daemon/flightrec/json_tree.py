"""Where each value of a JSON text stands, with comments and trailing commas if they are allowed."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flightrec.errors import FlightrecError

DEPTH_MAX = 100

_BLANK = re.compile(r"[ \t\r\n]*")
_TRIVIA = re.compile(r"(?:[ \t\r\n]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"{}\[\],:/]+', re.DOTALL)


@dataclass(slots=True)
class Node:
    """A value from ``start`` to ``end``; of an object or an array also what is in it."""

    start: int
    end: int
    value: Any = None
    members: "list[Member]" = field(default_factory=list)
    is_object: bool = False
    is_array: bool = False

    def find(self, key: str | int) -> "Member | None":
        """Return the member with this name (the last one counts, as for JSON), or this place."""
        if isinstance(key, int):
            return self.members[key] if 0 <= key < len(self.members) else None
        return next((m for m in reversed(self.members) if m.key == key), None)


@dataclass(slots=True)
class Member:
    """One member of an object, or one item of an array (no ``key``), from ``start`` on."""

    start: int
    node: Node
    key: str | None = None

    @property
    def end(self) -> int:
        """Where it ends, without a comma."""
        return self.node.end


def parse_tree(text: str, *, comments: bool = False) -> Node:
    """Return the tree of a whole text. Raises FlightrecError that names the line."""
    reader = _Reader(text, _TRIVIA if comments else _BLANK, trailing=comments)
    return reader.read_all()


class _Reader:
    def __init__(self, text: str, trivia: re.Pattern[str], *, trailing: bool) -> None:
        self._text = text
        self._trivia = trivia
        self._trailing = trailing
        self._at = 0

    def read_all(self) -> Node:
        node = self._read(0)
        self._skip()
        if self._at < len(self._text):
            raise self._broken("something follows the end")
        return node

    def _skip(self) -> None:
        found = self._trivia.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _peek(self) -> str:
        self._skip()
        return self._text[self._at : self._at + 1]

    def _broken(self, reason: str) -> FlightrecError:
        line = self._text.count("\n", 0, self._at) + 1
        return FlightrecError(f"line {line} is no JSON: {reason}")

    def _read(self, depth: int) -> Node:
        if depth > DEPTH_MAX:
            raise self._broken("it is nested too deeply")
        first = self._peek()
        if first == "{":
            return self._read_container("}", depth, Node(self._at, self._at, {}, is_object=True))
        if first == "[":
            return self._read_container("]", depth, Node(self._at, self._at, [], is_array=True))
        return self._read_scalar()

    def _read_scalar(self) -> Node:
        start = self._at
        found = _SCALAR.match(self._text, start)
        if found is None:
            raise self._broken("a value is missing")
        try:
            value = json.loads(found[0], parse_constant=self._no_constant)
        except ValueError:
            raise self._broken(f"{found[0][:40]} is no value") from None
        self._at = found.end()
        return Node(start, self._at, value)

    def _no_constant(self, name: str) -> Any:  # noqa: ANN401 - json wants it
        raise ValueError(name)

    def _read_container(self, close: str, depth: int, node: Node) -> Node:
        self._at += 1
        for member in self._read_members(close, depth, has_keys=node.is_object):
            node.members.append(member)
        node.end = self._at
        if node.is_object:
            node.value = {member.key: member.node.value for member in node.members}
        else:
            node.value = [member.node.value for member in node.members]
        return node

    def _read_members(self, close: str, depth: int, *, has_keys: bool) -> Iterator[Member]:
        while self._peek() != close:
            yield self._read_member(depth, has_key=has_keys)
            if self._peek() == ",":
                self._at += 1
                if self._peek() == close and not self._trailing:
                    raise self._broken("a comma is too much")
            elif self._peek() != close:
                raise self._broken(f"a comma or {close} is missing")
        self._at += 1

    def _read_member(self, depth: int, *, has_key: bool) -> Member:
        self._skip()
        start = self._at
        if not has_key:
            return Member(start, self._read(depth + 1))
        key = self._read_scalar()
        if not isinstance(key.value, str) or self._peek() != ":":
            raise self._broken("a name and a colon are missing")
        self._at += 1
        return Member(start, self._read(depth + 1), key.value)
