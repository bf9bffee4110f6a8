"""Changes in a JSON text that leave everything else, and the look of it, as it is."""

import json
import re
from collections.abc import Sequence
from typing import Any

from flightrec.edited_text import EditedText, newline_of
from flightrec.errors import FlightrecError
from flightrec.json_tree import Member, Node, parse_tree

_INDENT = re.compile(r"[ \t]*")
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)?")
_LINE_COMMENT = re.compile(r"\s*(//[^\r\n]*|/\*.*?\*/)", re.DOTALL)

Key = str | int


class JsonText(EditedText):
    """A JSON text to be changed. Raises FlightrecError where it is none."""

    def __init__(self, text: str, *, comments: bool = False) -> None:
        super().__init__(text)
        self._comments = comments
        if not text.strip():
            self.replace(0, len(text), "{}\n")
        if not self._root().is_object:
            raise FlightrecError("is no JSON object")

    def _root(self) -> Node:
        return parse_tree(self.text, comments=self._comments)

    def get(self, path: Sequence[Key]) -> Any:  # noqa: ANN401 - JSON
        """Return the value at ``path``, None where there is none."""
        node = self._node(path)
        return None if node is None else node.value

    def _node(self, path: Sequence[Key]) -> Node | None:
        node = self._root()
        for key in path:
            member = node.find(key)
            if member is None:
                return None
            node = member.node
        return node

    # --- setting -----------------------------------------------------------------------------

    def set(self, path: Sequence[str], value: Any) -> None:  # noqa: ANN401 - JSON
        """Give the member at ``path`` this value; objects on the way are made."""
        node = self._node(path)
        if node is None:
            self._add(path, value)
        elif node.value != value:
            self.replace(node.start, node.end, self._render(value, self._level_of(node.start)))

    def append(self, path: Sequence[str], value: Any) -> None:  # noqa: ANN401 - JSON
        """Add an item to the array at ``path``, which is made if it is not there."""
        node = self._node(path)
        if node is None:
            self._add(path, [value])
        elif not node.is_array:
            raise FlightrecError(f"{'.'.join(path)} is no list")
        else:
            self._insert(node, "", value)

    def _add(self, path: Sequence[str], value: Any) -> None:  # noqa: ANN401 - JSON
        depth = len(path) - 1
        while (parent := self._node(path[:depth])) is None:
            depth -= 1
        if not parent.is_object:
            raise FlightrecError(f"{'.'.join(path[:depth])} is no object")
        for key in reversed(path[depth + 1 :]):
            value = {key: value}
        self._insert(parent, json.dumps(path[depth], ensure_ascii=False) + ": ", value)

    def _insert(self, parent: Node, key: str, value: Any) -> None:  # noqa: ANN401 - JSON
        if parent.members:
            self._insert_behind(parent, key, value)
        else:
            self._insert_first(parent, key, value)

    def _insert_first(self, parent: Node, key: str, value: Any) -> None:  # noqa: ANN401 - JSON
        start = len(self.text[: parent.end - 1].rstrip())
        if self._is_one_line():
            new = key + self._render(value, "")
        else:
            outer, newline = self._level_of(parent.start), newline_of(self.text)
            inner = outer + self._unit()
            new = f"{newline}{inner}{key}{self._render(value, inner)}{newline}{outer}"
        self.replace(start, parent.end - 1, new)

    def _insert_behind(self, parent: Node, key: str, value: Any) -> None:  # noqa: ANN401 - JSON
        first, last = parent.members[0], parent.members[-1]
        comma = self._comma_after(last)
        at = last.end if comma is None else comma + 1
        if "\n" in self.text[parent.start : first.start]:
            level = self._level_of(first.start)
            rest = _REST_OF_LINE.match(self.text, at)
            behind = rest.end() if rest and _is_line_end(self.text, rest.end()) else at
            new = f"{newline_of(self.text)}{level}{key}{self._render(value, level)}"
        else:
            behind = at
            new = f" {key}{json.dumps(value, ensure_ascii=False)}"
        if comma is None:
            self.replace(behind, behind, new)
            self.replace(last.end, last.end, ",")
        else:
            self.replace(behind, behind, new + ",")

    # --- removing ----------------------------------------------------------------------------

    def remove(self, path: Sequence[Key]) -> None:
        """Take the member at ``path`` away, with its comma; nothing where there is none."""
        parent = self._node(path[:-1])
        member = None if parent is None else parent.find(path[-1])
        if parent is None or member is None:
            return
        place = parent.members.index(member)
        if len(parent.members) == 1:
            self._remove_only(parent, member)
        elif place + 1 < len(parent.members):
            comma = self._comma_after(member)
            assert comma is not None  # noqa: S101 - another member follows
            self.replace(member.start, _skip_blank(self.text, comma + 1), "")
        else:
            self._remove_last(parent.members[place - 1], member)

    def _remove_only(self, parent: Node, member: Member) -> None:
        comma = self._comma_after(member)
        end = member.end if comma is None else comma + 1
        around = self.text[parent.start + 1 : member.start] + self.text[end : parent.end - 1]
        if around.strip():  # comments
            self.replace(member.start, end, "")
        else:
            self.replace(parent.start + 1, parent.end - 1, "")

    def _remove_last(self, before: Member, member: Member) -> None:
        own, others = self._comma_after(member), self._comma_after(before)
        assert others is not None  # noqa: S101 - a member follows
        start = max(len(self.text[: member.start].rstrip()), others + 1)
        self.replace(start, member.end if own is None else own + 1, "")
        if own is None:
            self.replace(others, others + 1, "")

    def _comma_after(self, member: Member) -> int | None:
        at = member.end
        while found := _LINE_COMMENT.match(self.text, at):
            at = found.end()
        at = _skip_blank(self.text, at)
        return at if self.text[at : at + 1] == "," else None

    # --- the look of it ----------------------------------------------------------------------

    def _is_one_line(self) -> bool:
        return "\n" not in self.text.strip() and bool(self._root().members)

    def _level_of(self, at: int) -> str:
        """Return the blanks that begin the line of this place."""
        found = _INDENT.match(self.text, self.text.rfind("\n", 0, at) + 1)
        return found[0] if found else ""

    def _unit(self) -> str:
        root = self._root()
        if root.members and "\n" in self.text[root.start : root.members[0].start]:
            return self._level_of(root.members[0].start) or "  "
        return "  "

    def _render(self, value: Any, level: str) -> str:  # noqa: ANN401 - JSON
        if self._is_one_line():
            return json.dumps(value, ensure_ascii=False)
        text = json.dumps(value, ensure_ascii=False, indent=self._unit())
        return text.replace("\n", newline_of(self.text) + level)


def _skip_blank(text: str, at: int) -> int:
    return at + len(text[at:]) - len(text[at:].lstrip(" \t\r\n"))


def _is_line_end(text: str, at: int) -> bool:
    return text[at : at + 1] in ("\n", "\r", "")
