"""Changes in a TOML text that leave everything else as it is.

No parser says where a value stands, so the likely places are tried one after the other, and the
first counts after which the text means what it meant before and the new value.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from flightrec.edited_text import Change, EditedText, apply, newline_of
from flightrec.errors import FlightrecError

MARK = "# flightrec"
"""Behind the header of a table that was made for us."""

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


class TomlText(EditedText):
    """A TOML text to be changed. Raises FlightrecError where it is none."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._data()

    def _data(self) -> dict[str, Any]:
        return _parse(self.text)

    def get(self, table: Sequence[str], key: str) -> Any:  # noqa: ANN401 - TOML
        """Return the value of ``key`` in this table, None where there is none."""
        data: Any = self._data()
        for name in (*table, key):
            data = data.get(name) if isinstance(data, dict) else None
        return data

    def set(self, table: Sequence[str], key: str, value: str) -> None:
        """Give ``key`` of this table a value. Raises FlightrecError where no place is found."""
        now = self.get(table, key)
        if now == value:
            return
        wanted = self._data()
        _set(wanted, table, key, value)
        places = self._places(table, key, value) if now is None else self._values(key, value)
        if not self._try(places, wanted):
            name = ".".join(table)
            raise FlightrecError(f'write {key} = "{value}" below [{name}] by hand, and try again')

    def remove(self, table: Sequence[str], key: str) -> None:
        """Take ``key`` out of this table, and the table with it that was made for us."""
        value = self.get(table, key)
        if value is None:
            return
        wanted = self._data()
        _unset(wanted, table, key)
        if not self._try(self._lines_of(key, value), wanted):
            raise FlightrecError(f"take {key} out of [{'.'.join(table)}] by hand")
        self._remove_empty(table)

    def remove_table(self, table: Sequence[str]) -> None:
        """Take a whole table away, with the blank line before it; nothing where there is none."""
        wanted = self._data()
        inside = wanted
        for name in table[:-1]:
            inside = inside.get(name, {})
        if inside.pop(table[-1], None) is None:
            return
        if not self._try(self._whole_tables(table), wanted):
            self._try(self._whole_tables(table), _without_empty(wanted, table[:-1]))

    def _whole_tables(self, table: Sequence[str]) -> Iterator[Change]:
        for header in self._headers(table):
            yield Change(self._start_of_gap(header.start()), self._end_of_table(header.end()), "")

    def _start_of_gap(self, at: int) -> int:
        """Return where a blank line before this place begins, or the place."""
        blank = re.search(r"(?:(?<=\n)|\A)[ \t]*\r?\n\Z", self.text[:at])
        return blank.start() if blank else at

    def _try(self, places: Iterator[Change], wanted: dict[str, Any]) -> bool:
        for change in places:
            try:
                found = _parse(apply(self.text, [change]))
            except FlightrecError:
                continue
            if found == wanted:
                self.replace(*change)
                return True
        return False

    # --- places ------------------------------------------------------------------------------

    def _places(self, table: Sequence[str], key: str, value: str) -> Iterator[Change]:
        pair, newline = f"{key} = {_quoted(value)}", newline_of(self.text)
        for header in self._headers(table):
            at = self._end_of_table(header.end())
            gap = "" if self.text[:at].endswith("\n") else newline
            yield Change(at, at, f"{gap}{pair}{newline}")
        name = re.escape(table[-1])
        for inline in re.finditer(rf"\b{name}[ \t]*=[ \t]*\{{([ \t]*\}})?", self.text):
            at = inline.start(1) if inline[1] else inline.end()
            yield Change(at, at, f" {pair} " if inline[1] else f" {pair},")
        line = re.compile(rf"^([^\n=#]*\b{name}\.)[^\n=#]+=[^\n]*\n", re.MULTILINE)
        for dotted in line.finditer(self.text):
            yield Change(dotted.end(), dotted.end(), f"{dotted[1]}{pair}{newline}")
        yield self._new_table(table, pair)

    def _headers(self, table: Sequence[str]) -> Iterator[re.Match[str]]:
        parts = (
            f"(?:{re.escape(part)}|'{re.escape(part)}'|{re.escape(_quoted(part))})"
            for part in table
        )
        name = r"[ \t]*\.[ \t]*".join(parts)
        header = re.compile(rf"^[ \t]*\[[ \t]*{name}[ \t]*\][^\n]*(\n|\Z)", re.MULTILINE)
        return header.finditer(self.text)

    def _end_of_table(self, start: int) -> int:
        """Return the place behind the last line of a table that is not blank."""
        following = _HEADER.search(self.text, start)
        end = following.start() if following else len(self.text)
        kept = self.text[start:end].rstrip()
        if not kept:
            return start
        line_end = self.text.find("\n", start + len(kept))
        return len(self.text) if line_end < 0 else line_end + 1

    def _new_table(self, table: Sequence[str], pair: str) -> Change:
        newline, end = newline_of(self.text), len(self.text)
        gap = "" if not self.text else newline if self.text.endswith("\n") else newline * 2
        header = f"[{'.'.join(table)}] {MARK}"
        return Change(end, end, f"{gap}{header}{newline}{pair}{newline}")

    # --- what is there -----------------------------------------------------------------------

    def _values(self, key: str, value: str) -> Iterator[Change]:
        pattern = rf"\b{re.escape(key)}[ \t]*=[ \t]*(\"[^\"\n]*\"|'[^'\n]*')"
        for found in re.finditer(pattern, self.text):
            yield Change(found.start(1), found.end(1), _quoted(value))

    def _lines_of(self, key: str, value: str) -> Iterator[Change]:
        pair = rf"{re.escape(key)}[ \t]*=[ \t]*(?:{re.escape(_quoted(value))}|'{re.escape(value)}')"
        for pattern in (
            rf"^[^\n=#]*\b{pair}[ \t]*(\n|\r\n|\Z)",
            rf"[ \t]*\b{pair}[ \t]*,",
            rf",[ \t]*{pair}",
            rf"[ \t]*{pair}[ \t]*",
        ):
            for found in re.finditer(pattern, self.text, re.MULTILINE):
                yield Change(found.start(), found.end(), "")

    def _remove_empty(self, table: Sequence[str]) -> None:
        for header in self._headers(table):
            following = _HEADER.search(self.text, header.end())
            end = following.start() if following else len(self.text)
            if MARK in header[0] and not self.text[header.end() : end].strip():
                self.replace(self._start_of_gap(header.start()), header.end(), "")
                return


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FlightrecError(f"is no TOML: {error}") from None


def _without_empty(data: dict[str, Any], table: Sequence[str]) -> dict[str, Any]:
    """Return the data without a table that was there only for those below it."""
    inside = data
    for name in table[:-1]:
        inside = inside[name]
    if inside[table[-1]] == {}:
        del inside[table[-1]]
    return data if inside or len(table) < 2 else _without_empty(data, table[:-1])


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _set(data: dict[str, Any], table: Sequence[str], key: str, value: str) -> None:
    for name in table:
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            raise FlightrecError(f"{name} is no table")
    data[key] = value


def _unset(data: dict[str, Any], table: Sequence[str], key: str) -> None:
    for name in table:
        data = data[name]
    del data[key]
