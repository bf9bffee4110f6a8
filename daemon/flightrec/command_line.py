"""A command line taken apart: words, redirections, simple commands and what joins them.

All positions are code points of the line's text, ``start`` inclusive, ``end`` exclusive.
"""

import msgspec


class Word(msgspec.Struct, frozen=True):
    """One word of the shell.

    ``text`` is its value after quote removal, with expansions left as written. ``literal``: the
    shell would expand nothing in it (no variable, substitution, glob, ``~``, ``{a,b}``), so that
    ``text`` is what the program receives. ``quoted``: some of it is quoted or escaped.
    """

    text: str
    start: int
    end: int
    literal: bool
    quoted: bool


class Redirection(msgspec.Struct, frozen=True):
    """One redirection of a simple command: ``2>&1`` is operator ``>&``, fd 2, target ``1``.

    ``fd`` is the number written before the operator, None where none is; ``variable`` the name in
    ``{name}>``. The body of a here-document lies between ``body_start`` and ``body_end``, its end
    marker not included; the target is the marker.
    """

    operator: str
    fd: int | None
    target: Word
    start: int
    end: int
    variable: str = ""
    body: str | None = None
    body_start: int = -1
    body_end: int = -1


class Operator(msgspec.Struct, frozen=True):
    """What joins two commands: ``|``, ``|&``, ``&&``, ``||``, ``;``, ``&`` or a newline."""

    text: str
    start: int
    end: int


class SimpleCommand(msgspec.Struct, frozen=True):
    """A segment of the line: one simple command, ``[[ … ]]`` or ``(( … ))``.

    ``words`` are all words, leading wrappers included (``!`` and ``time`` count as such);
    ``wrappers`` says how many of them are wrappers with their options. ``depth`` is the number of
    ``( )``, ``{ }``, ``if``, ``case``, loops and function bodies around it. A here-document's body
    lies outside ``start`` and ``end``.
    """

    start: int
    end: int
    assignments: tuple[Word, ...]
    words: tuple[Word, ...]
    wrappers: int
    redirections: tuple[Redirection, ...]
    depth: int

    @property
    def program(self) -> str:
        """The command's name as written, without its wrappers; empty where there is none."""
        return self.words[self.wrappers].text if self.wrappers < len(self.words) else ""

    @property
    def arguments(self) -> tuple[Word, ...]:
        """The words after the program."""
        return self.words[self.wrappers + 1 :]

    @property
    def core(self) -> tuple[Word, ...]:
        """The program and its arguments."""
        return self.words[self.wrappers :]

    @property
    def negated(self) -> bool:
        """Whether ``!`` turns the exit status around."""
        return any(w.text == "!" and not w.quoted for w in self.words[: self.wrappers])


class CommandLine(msgspec.Struct, frozen=True):
    """A whole line: its segments from left to right and what stands between them.

    ``operators[i]`` stands between ``segments[i]`` and ``segments[i + 1]``; inside compounds it is
    the nearest one before the later segment. ``compound``: a control structure, group, subshell or
    function definition was seen. ``complete`` is False where a quote, here-document, bracket or
    compound is left open, where something is closed that was not open, or where the text is longer
    than what is read. ``background``: the last command is not waited for.
    """

    text: str
    segments: tuple[SimpleCommand, ...] = ()
    operators: tuple[Operator, ...] = ()
    compound: bool = False
    complete: bool = True
    has_heredoc: bool = False
    has_comment: bool = False
    background: bool = False

    @property
    def leading(self) -> int:
        """How many leading segments only prepare the others.

        ``cd /x && make`` is about ``make``. Never all of them: in ``cd /x`` the ``cd`` is it.
        """
        count = 0
        for segment, operator in zip(self.segments, self.operators, strict=False):
            if not _prepares(segment) or operator.text not in _SEQUENCE:
                break
            count += 1
        return count

    @property
    def core_segments(self) -> tuple[SimpleCommand, ...]:
        """The segments that the line is about, without the leading ``cd DIR &&`` and the like."""
        return self.segments[self.leading :]

    def core_text(self, index: int) -> str:
        """Return one segment's program and arguments as written, one blank between two words.

        Assignments, wrappers and redirections are left out.
        """
        return " ".join(self.text[w.start : w.end] for w in self.segments[index].core)


_PREPARING = frozenset(("cd", "pushd", "set", "export"))
_SEQUENCE = frozenset(("&&", ";", "\n"))


def _prepares(segment: SimpleCommand) -> bool:
    if segment.depth:
        return False
    return segment.program in _PREPARING if segment.words else bool(segment.assignments)


def replace_segment(line: CommandLine, index: int, new: str) -> str:
    """Return the line with one segment's program and arguments replaced by ``new``, as written.

    Assignments before it, wrappers and redirections are kept; a redirection between two words moves
    behind ``new``.
    """
    segment, text = line.segments[index], line.text
    if not segment.core:
        return f"{text[: segment.end]} {new}{text[segment.end :]}"
    start, end = segment.core[0].start, segment.core[-1].end
    kept = [text[r.start : r.end] for r in segment.redirections if start < r.start < end]
    return text[:start] + " ".join([new, *kept]) + text[end:]
