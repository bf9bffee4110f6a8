"""Command lines of bash and zsh → simple commands with their spans.

Nobody can know which shell will read a line, so a line is read as bash does, and where that leaves
something open, as zsh does.

The reader is a pushdown automaton with its own stack: a frame for a list of commands (the line, or
what stands in ``$( )`` and ``<( )``), one for a double quote, one for a pair of brackets. Each
frame reads until it is closed or until something opens inside it. Nothing is ever read back, except
by ``((``, which a shell too can only try; that is bounded, so time is linear in the text's length.
Only the line's own frame records segments: what stands in quotes, here-documents and substitutions
is data here.
"""

import enum
import functools
import re
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import msgspec

from flightrec.command_line import (
    CommandLine,
    Operator,
    Redirection,
    SimpleCommand,
    Word,
    replace_segment,
)
from flightrec.nesting import (
    QUOTES,
    Frame,
    Heredoc,
    Source,
    matcher,
    open_arithmetic,
    open_array,
    open_glob,
    open_here,
    open_subscript,
    stretch,
)
from flightrec.quoting import make_word, quote
from flightrec.wrappers import count_wrapper_words

__all__ = [
    "TEXT_MAX",
    "CommandLine",
    "Operator",
    "Redirection",
    "SimpleCommand",
    "Word",
    "parse",
    "quote",
    "replace_segment",
]

TEXT_MAX = 16 * 1024
"""Code points that are read of a line."""

_REMEMBERED_MAX = 1024
"""Longer lines are not kept by ``parse``: a handful of them would outweigh the rest."""


def parse(text: str) -> CommandLine:
    """Return the line's structure. Never raises; what cannot be read is no segment."""
    return _remembered(text) if len(text) <= _REMEMBERED_MAX else _parse(text)


def _parse(text: str) -> CommandLine:
    line = _read(text, zsh=False)
    if line.complete or "}" not in text or len(text) > TEXT_MAX:
        return line
    other = _read(text, zsh=True)
    return other if other.complete else line


# A run's line is read when it starts, when it is redacted and when it is classified.
_remembered = functools.lru_cache(maxsize=64)(_parse)


def _read(text: str, *, zsh: bool) -> CommandLine:
    source = Source(text[:TEXT_MAX], _open_substitution, zsh=zsh)
    line = _Commands(source, 0, "")
    stack: list[Frame] = [line]
    while stack:
        opened = stack[-1].run()
        if opened is not None:
            stack.append(opened)
        else:
            source.closed[stack.pop().start] = source.position
    return CommandLine(
        text,
        tuple(line.segments),
        tuple(line.operators),
        line.compound,
        source.complete and len(text) <= TEXT_MAX,
        source.has_heredoc,
        line.has_comment,
        line.gap is not None and line.gap.text == "&",
    )


class _Expect(enum.IntEnum):  # numbers are hashed in C, and this is looked up at every token
    """What the next word is."""

    COMMAND = enum.auto()  # a reserved word, an assignment or a program
    PREFIXED = enum.auto()  # an assignment or a program
    ARGUMENT = enum.auto()
    NOTHING = enum.auto()  # a compound was closed: a reserved word that goes on
    TEST = enum.auto()  # anything up to ]]
    FUNCTION = enum.auto()  # the name of a function
    FOR_NAME = enum.auto()
    FOR_IN = enum.auto()
    FOR_WORD = enum.auto()
    LOOP_BODY = enum.auto()  # do, {, or in zsh a command
    CASE_WORD = enum.auto()
    CASE_IN = enum.auto()
    PATTERN = enum.auto()  # of a case, or esac
    PATTERN_REST = enum.auto()


_COMMAND, _PREFIXED, _ARGUMENT = _Expect.COMMAND, _Expect.PREFIXED, _Expect.ARGUMENT
_NOTHING, _TEST, _LOOP_BODY = _Expect.NOTHING, _Expect.TEST, _Expect.LOOP_BODY
_PATTERNS = frozenset((_Expect.PATTERN, _Expect.PATTERN_REST))
_FOR_HEADER = frozenset((_Expect.FOR_NAME, _Expect.FOR_IN, _Expect.FOR_WORD))
_RESERVED_HERE = frozenset((_COMMAND, _NOTHING, _LOOP_BODY))
_COMMAND_HERE = frozenset((_COMMAND, _PREFIXED, _NOTHING, _LOOP_BODY))
_LIST_HERE = frozenset((_COMMAND, _PREFIXED, _ARGUMENT, _NOTHING))

_OPENS = {"if": "then", "while": "do", "until": "do", "for": "do", "select": "do", "case": "esac"}
"""Reserved words that open a compound → the word that is due."""

_TURNS = {
    "then": ("then", "fi"),
    "elif": ("fi", "then"),
    "else": ("fi", "fi"),
    "do": ("do", "done"),
}
"""Reserved words inside a compound → the word that was due, the word that is due from now on."""

_CLOSES = frozenset(("fi", "done", "esac", "}"))
_HEADERS = {"for": _Expect.FOR_NAME, "select": _Expect.FOR_NAME, "case": _Expect.CASE_WORD}
_PREFIXES = frozenset(("!", "time", "coproc"))
_RESERVED = frozenset((*_OPENS, *_TURNS, *_CLOSES, *_PREFIXES, "{", "[[", "function", "always"))
_RESERVED_LENGTH = max(map(len, _RESERVED))

_PIPES = frozenset(("|", "|&"))
_CONTINUES = frozenset(("&&", "||", "|", "|&"))
_CASE_ENDS = frozenset((";;", ";&", ";;&", ";|"))
_SAME_AS = {";;": ";", ";&": ";", ";;&": ";", ";|": ";", "&!": "&", "&|": "&"}

_PLAIN, _REDIRECT, _OPERATOR, _NEWLINE, _OPEN_PAREN, _CLOSE_PAREN, _COMMENT, _END = (
    1, 2, 6, 7, 8, 9, 10, 11,
)  # fmt: skip
_TOKEN = matcher(
    r"""(?>(?:[ \t]|\\\n)*)(?:
      ([\w./:@%+,=^\]-]++)(?=[ \t\n;&|)]|\Z)
    | ((?:([0-9]{1,9})|\{([A-Za-z_]\w*)\})?
       (<<<|<<-?|<>|<&|<(?!\()|>>(?:\||!(?=[ \t]))?|>\||>&|>!(?=[ \t])|>(?!\())
       |&>>?[|!]?)
    | (&&|\|\||;;&|;;|;&|;\||\|&|&[|!](?=[ \t]*(?:[\n;]|\Z))|[;&|])
    | (\n) | (\() | (\)) | (\#[^\n]*+) | (\Z)
    )?"""
)
_TEST_TOKEN = matcher(
    r"(?>(?:[ \t\n]|\\\n)*)(?:(\]\])(?=[ \t\n;&|()<>]|\Z)|([()]|&&|\|\||[<>](?!\())|(\Z))?"
)
_TEST_END, _TEST_OPERATOR = 1, 2

_RUN = stretch(r"""[^ \t\n;&|()<>'"\\$`]++""", *QUOTES)
_TEST_RUN = stretch(r"""[^ \t\n()'"\\$`]++""", *QUOTES)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*+(?:\+?=|(\[))", re.ASCII).match
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*+\[", re.ASCII).match
_EMPTY_PARENS = re.compile(r"\([ \t]*+\)").match
_COPROC_NAME = re.compile(
    r"[ \t]++[\w.-]++[ \t]++(?=[{(]|(?:if|while|until|for|select|case)[ \t\n])"
).match

_DATA = Word("", 0, 0, literal=False, quoted=False)
"""Stands for a word of a substitution, of which only the number counts."""


class _Redirect(NamedTuple):
    """A redirection whose target comes next."""

    operator: str
    fd: int | None
    variable: str
    start: int


class _Commands:
    """A list of commands: the whole line, or the inside of a substitution up to its ``)``."""

    def __init__(self, source: Source, start: int, closer: str) -> None:
        self.source = source
        self.start = start
        self.closer = closer
        self.records = not closer
        self.expect = _COMMAND
        self.due: list[str] = []  # the words that have to close what is open
        self.needs_command = False
        self.piped = False
        self.braced_if = False
        self.done = False

        self.word_start = -1  # of a word that is read in several steps
        self.arithmetic = -1  # where a (( began
        self.redirect: _Redirect | None = None
        self.heredocs: list[Heredoc] = []

        self.assignments: list[Word] = []
        self.words: list[Word] = []
        self.program_at = 0  # how many words there were when the program was read
        self.redirections: list[Redirection] = []
        self.gap: Operator | None = None
        self.segments: list[SimpleCommand] = []
        self.operators: list[Operator] = []
        self.compound = False
        self.has_comment = False

    def run(self) -> Frame | None:
        """Read on until something opens (returned) or this list is closed (None)."""
        opened = self._resume()
        source = self.source
        text = source.text
        while opened is None and not self.done:
            if self.expect is _TEST:
                opened = self._test_token()
                continue
            token = _TOKEN(text, source.position)
            source.position = end = token.end()
            kind = token.lastindex
            if kind is None:
                opened = self._begin_word(end)
            elif kind != _PLAIN:
                opened = self._ON_TOKEN[kind](self, token)
            elif self.expect is _ARGUMENT and self.records and self.redirect is None:
                # by far the most frequent token, so it takes the shortest way
                self.words.append(
                    Word(token[1], end - len(token[1]), end, literal=True, quoted=False)
                )
            else:
                self._word(token.start(1), end)
        return opened

    def _resume(self) -> Frame | None:
        """Go on with what was left when a frame was opened."""
        if self.arithmetic >= 0:
            self._leave_arithmetic()
        return self._continue_word() if self.word_start >= 0 else None

    # words

    def _begin_word(self, start: int) -> Frame | None:
        self.word_start = start
        if self.redirect is None and self.expect in _COMMAND_HERE:
            subscript = _SUBSCRIPT(self.source.text, start)
            if subscript:  # a[x y]=1 is one word
                return open_subscript(self.source, subscript.end() - 1)
        return self._continue_word()

    def _continue_word(self) -> Frame | None:
        source, text = self.source, self.source.text
        run = _TEST_RUN if self.expect is _TEST else _RUN
        position = source.position = run(text, source.position).end()
        char = text[position : position + 1]
        if char == "(" and not self._names_function(position):
            is_array = text[position - 1] == "="
            return open_array(source, position) if is_array else open_glob(source, position)
        if char and (char in "'\"\\$`" or text.startswith(("<(", ">("), position)):
            opened = open_here(source)
            if opened is not None:
                return opened
        self._end_word()
        return None

    def _names_function(self, position: int) -> bool:
        """Whether the word that ends here is the name in ``name()``."""
        if position == self.word_start:
            return False
        if self.expect is _Expect.FUNCTION:
            return True
        if self.expect not in _COMMAND_HERE or self.assignments:
            return False
        return _EMPTY_PARENS(self.source.text, position) is not None

    def _end_word(self) -> None:
        start, end, text = self.word_start, self.source.position, self.source.text
        if end == start:
            self.source.position += 1  # nothing takes this character; reading has to go on
        while text.endswith("\\\n", start, end):
            end -= 2  # a line continuation behind the word is none of it
        self.word_start = -1
        if end > start:
            self._word(start, end)

    def _word(self, start: int, end: int) -> None:
        if self.redirect is not None:
            self._redirect_to(self.redirect, start, end)
        else:
            self._ON_WORD[self.expect](self, start, end)

    def _make(self, start: int, end: int) -> Word:
        if not self.records:
            return _DATA
        return make_word(self.source.text, start, end, self.source.closed)

    def _raw(self, start: int, end: int) -> str:
        """Return the word as written, or nothing where it is too long for a reserved one."""
        return self.source.text[start:end] if end - start <= _RESERVED_LENGTH else ""

    def _argument(self, start: int, end: int) -> None:
        # zsh: } closes a group wherever it stands as a word
        if self.source.zsh and self.due and self.due[-1] == "}" and self._raw(start, end) == "}":
            self._finish_command()
            self._close("}")
        else:
            self.words.append(self._make(start, end))

    def _first_word(self, start: int, end: int) -> None:
        if self.expect is not _PREFIXED:
            raw = self._raw(start, end)
            if raw in _RESERVED and self._reserved(raw, start, end):
                return
            if raw == "-p" and self.words and self.words[-1].text == "time":
                self.words.append(self._make(start, end))
                return
            if self.expect is _NOTHING:
                self.source.complete = False
        self.needs_command = False
        word = self._make(start, end)
        if self._is_assignment(start, end):
            self.assignments.append(word)
            self.expect = _PREFIXED
        else:
            self.words.append(word)
            self.program_at = len(self.words)
            self.expect = _ARGUMENT

    def _is_assignment(self, start: int, end: int) -> bool:
        match = _ASSIGNMENT(self.source.text, start, end)
        if match is None or match[1] is None:
            return match is not None
        after = self.source.closed.get(match.start(1), end)
        return self.source.text.startswith(("=", "+="), after, end)

    # reserved words

    def _reserved(self, raw: str, start: int, end: int) -> bool:
        """Take a reserved word; False where it is an ordinary one after all."""
        if (raw == "always" and self.expect is not _NOTHING) or (raw == "time" and self.piped):
            return False
        self.needs_command = False
        if raw in _PREFIXES:
            self._prefix(raw, start, end)
            return True
        self.words.clear()  # ! and time before a compound
        if raw == "[[":
            self.words.append(self._make(start, end))
            self.expect = _TEST
        elif raw in _CLOSES:
            self._close(raw)
        elif raw in _TURNS:
            self._turn(raw)
        else:
            self._open_compound(raw)
        return True

    def _prefix(self, raw: str, start: int, end: int) -> None:
        self.words.append(self._make(start, end))
        self.expect = _COMMAND
        name = _COPROC_NAME(self.source.text, end) if raw == "coproc" else None
        if name:
            self.source.position = name.end()

    def _open_compound(self, raw: str) -> None:
        self.compound = True
        if raw == "{":
            self._open_brace()
        elif raw == "function":
            self.expect = _Expect.FUNCTION
            return
        elif raw in _OPENS:
            self.due.append(_OPENS[raw])
        self.expect = _HEADERS.get(raw, _COMMAND)

    def _open_brace(self) -> None:
        """``{`` is a group, or stands for ``do`` (also in bash) or ``then`` (zsh)."""
        due = self.due[-1] if self.due else ""
        if due == "do" and self.expect in (_LOOP_BODY, _NOTHING):
            self.due[-1] = "}"
        elif due == "then" and self.expect is _NOTHING:
            self.due[-1] = "}"
            self.braced_if = True
        else:
            self.due.append("}")

    def _turn(self, raw: str) -> None:
        was_due, is_due = _TURNS[raw]
        if self.due and self.due[-1] == was_due:
            self.due[-1] = is_due
        elif raw == "do":
            self.due.append(is_due)  # zsh: for x (a b) do, repeat 3; do
            self.compound = True
        elif not (self.braced_if and self.expect is _NOTHING):
            self.source.complete = False
        self.expect = _COMMAND

    def _close(self, raw: str) -> None:
        if self.due and self.due[-1] == raw:
            self.due.pop()
        else:
            self.source.complete = False
        self.expect = _NOTHING

    # headers of compounds

    def _function_name(self, start: int, end: int) -> None:
        self.expect = _COMMAND
        if self._raw(start, end) == "{":  # zsh: a function without a name
            self._open_brace()
        else:
            self.needs_command = True

    def _for_name(self, _start: int, _end: int) -> None:
        self.expect = _Expect.FOR_IN

    def _for_in(self, start: int, end: int) -> None:
        raw = self._raw(start, end)
        if raw == "in":
            self.expect = _Expect.FOR_WORD
        elif raw in ("do", "{"):
            self.expect = _LOOP_BODY
            self._first_word(start, end)

    def _ignore(self, _start: int, _end: int) -> None:
        """Words of a loop's list are no command."""

    def _case_word(self, _start: int, _end: int) -> None:
        self.expect = _Expect.CASE_IN

    def _case_in(self, start: int, end: int) -> None:
        if self._raw(start, end) == "in":
            self.expect = _Expect.PATTERN
        else:
            self.source.complete = False

    def _pattern(self, start: int, end: int) -> None:
        if self._raw(start, end) == "esac":
            self._close("esac")
        else:
            self.expect = _Expect.PATTERN_REST

    # redirections

    def _redirection(self, token: re.Match[str]) -> None:
        digits = token[3]
        if digits and self.redirect is not None and self.redirect.operator.endswith("&"):
            self._redirect_to(self.redirect, *token.span(3))  # 2>&1>log
            digits = None
        self._missing_target()
        self.redirect = _Redirect(
            token[5] or token[2], int(digits) if digits else None, token[4] or "", token.start(2)
        )
        if self.expect is _COMMAND:
            self.expect = _PREFIXED
            self.needs_command = False

    def _redirect_to(self, redirect: _Redirect, start: int, end: int) -> None:
        self.redirect = None
        operator, fd, variable, first = redirect
        is_heredoc = operator in ("<<", "<<-")
        if not (self.records or is_heredoc):
            return
        target = make_word(self.source.text, start, end, self.source.closed)
        redirection = Redirection(operator, fd, target, first, end, variable)
        if self.expect is _PREFIXED or self.expect is _ARGUMENT:
            self.redirections.append(redirection)
        if is_heredoc:
            self.source.has_heredoc = True
            doc = Heredoc(target.text, operator == "<<-", target.quoted, redirection)
            self.heredocs.append(doc)

    def _read_heredocs(self) -> None:
        source = self.source
        for doc in self.heredocs:
            start = source.position
            end, source.position = doc.find_end(source.text, start, nested=bool(self.closer))
            if end < 0:
                end = source.end
                source.cut()
            body = {"body": source.text[start:end], "body_start": start, "body_end": end}
            for name, value in body.items() if self.records else ():
                msgspec.structs.force_setattr(doc.redirection, name, value)
        self.heredocs.clear()

    # operators and brackets

    def _missing_target(self) -> None:
        if self.redirect is not None:
            self.redirect = None
            self.source.complete = False

    def _operator(self, token: re.Match[str]) -> None:
        self._missing_target()
        operator = token[_OPERATOR]
        if self.expect in _PATTERNS:
            return
        if self.expect not in _LIST_HERE and self.expect is not _LOOP_BODY:
            self.source.complete = self.source.complete and operator == ";"
            self.expect = _LOOP_BODY if self.expect in _FOR_HEADER else self.expect
            return
        self._finish_command()
        start, end = token.span(_OPERATOR)
        self.gap = Operator(_SAME_AS.get(operator, operator), start, end)
        self.needs_command = operator in _CONTINUES
        self.piped = operator in _PIPES
        next_pattern = operator in _CASE_ENDS and self.due and self.due[-1] == "esac"
        self.expect = _Expect.PATTERN if next_pattern else _COMMAND

    def _newline(self, token: re.Match[str]) -> None:
        self._missing_target()
        if self.heredocs:
            self._read_heredocs()
        if self.expect is _Expect.FOR_WORD:
            self.expect = _LOOP_BODY
        elif self.expect in _LIST_HERE:
            self._finish_command()
            self.expect = _COMMAND
            if self.gap is None:
                self.gap = Operator("\n", token.start(_NEWLINE), token.end(_NEWLINE))

    def _open_paren(self, token: re.Match[str]) -> Frame | None:
        start = token.start(_OPEN_PAREN)
        source = self.source
        empty = _EMPTY_PARENS(source.text, start)
        if self.expect in _PATTERNS:
            self.expect = _Expect.PATTERN_REST
        elif empty and (self.expect in _COMMAND_HERE or self._is_one_word()):
            source.position = empty.end()
            self._define_function()
        elif self.expect in _COMMAND_HERE or self.expect is _Expect.FOR_NAME:
            return self._open_group(start)
        elif self.expect is _Expect.FOR_IN:  # zsh: for x (a b)
            self.due.pop()
            self.expect = _LOOP_BODY
            return open_array(source, start)
        else:  # zsh: a glob such as (a|b)*
            source.position = start
            return self._begin_word(start)
        return None

    def _is_one_word(self) -> bool:
        has_only_program = self.program_at == len(self.words) and not self.assignments
        return has_only_program and self.expect is _ARGUMENT

    def _define_function(self) -> None:
        self.words.clear()
        self.compound = self.needs_command = True
        self.expect = _COMMAND

    def _open_group(self, start: int) -> Frame | None:
        source = self.source
        self.needs_command = False
        if source.text.startswith("((", start) and source.reread <= source.end:
            self.arithmetic = start
            return open_arithmetic(source, start)
        self._open_subshell()
        return None

    def _open_subshell(self) -> None:
        self.words.clear()
        self.due.append(")")
        self.compound = True
        self.expect = _COMMAND

    def _leave_arithmetic(self) -> None:
        """Take ``(( … ))``, or read it again as subshells where the last two are not together."""
        source, start = self.source, self.arithmetic
        self.arithmetic = -1
        end = source.position
        if source.text.startswith(")", end):
            source.position = end + 1
            self._take_arithmetic(start, end - 1, end + 1)
        elif end < source.end:
            source.reread += end - start
            source.position = start + 1
            self._open_subshell()

    def _take_arithmetic(self, start: int, close: int, end: int) -> None:
        if self.expect is _Expect.FOR_NAME:
            self.expect = _LOOP_BODY
            return
        if self.records:
            inside = self.source.text[start + 2 : close]
            self.words += (
                Word("((", start, start + 2, literal=True, quoted=False),
                Word(inside, start + 2, close, literal=False, quoted=False),
                Word("))", close, end, literal=True, quoted=False),
            )
            self._finish_command()
        self.expect = _NOTHING

    def _close_paren(self, _token: re.Match[str]) -> None:
        self._missing_target()
        if self.expect in _PATTERNS:
            self.expect = _COMMAND
            return
        self._finish_command()
        if self.due and self.due[-1] == ")":
            self.due.pop()
            self.expect = _NOTHING
        else:
            self._finish_list(closed=bool(self.closer))
            self.done = bool(self.closer)

    def _comment(self, _token: re.Match[str]) -> None:
        self.has_comment = True

    def _end(self, _token: re.Match[str]) -> None:
        self._missing_target()
        self._finish_command()
        self._finish_list(closed=self.records)
        self.done = True

    def _finish_list(self, *, closed: bool) -> None:
        """Note whether the list may end here."""
        is_open = self.due or self.needs_command or self.heredocs or self.expect not in _LIST_HERE
        if is_open or not closed:
            self.source.complete = False

    # segments

    def _test_token(self) -> Frame | None:
        source = self.source
        token = _TEST_TOKEN(source.text, source.position)
        source.position = token.end()
        if token.lastindex is None:
            return self._begin_word(source.position)
        if token.lastindex > _TEST_OPERATOR:
            source.cut()
            self._finish_command()
            self.done = True
            return None
        self.words.append(self._make(token.start(token.lastindex), token.end()))
        if token.lastindex == _TEST_END:
            self._finish_command()
            self.expect = _NOTHING
        return None

    def _finish_command(self) -> None:
        if self.records and (self.words or self.assignments or self.redirections):
            self._add_segment()
        self.words.clear()
        self.assignments.clear()
        self.redirections.clear()

    def _add_segment(self) -> None:
        parts: list[list[Word] | list[Redirection]]
        parts = [part for part in (self.assignments, self.words, self.redirections) if part]
        start = min([part[0].start for part in parts])
        if self.segments:
            self.operators.append(self.gap or Operator(";", start, start))
        self.gap = None
        self.segments.append(
            SimpleCommand(
                start,
                max([part[-1].end for part in parts]),
                tuple(self.assignments),
                tuple(self.words),
                count_wrapper_words([word.text for word in self.words]),
                tuple(self.redirections),
                len(self.due),
            )
        )

    _ON_TOKEN: ClassVar[dict[int, Callable[["_Commands", re.Match[str]], Frame | None]]] = {
        _REDIRECT: _redirection,
        _OPERATOR: _operator,
        _NEWLINE: _newline,
        _OPEN_PAREN: _open_paren,
        _CLOSE_PAREN: _close_paren,
        _COMMENT: _comment,
        _END: _end,
    }
    _ON_WORD: ClassVar[dict[_Expect, Callable[["_Commands", int, int], None]]] = {
        _Expect.COMMAND: _first_word,
        _Expect.PREFIXED: _first_word,
        _Expect.NOTHING: _first_word,
        _Expect.LOOP_BODY: _first_word,
        _Expect.ARGUMENT: _argument,
        _Expect.TEST: _argument,
        _Expect.FUNCTION: _function_name,
        _Expect.FOR_NAME: _for_name,
        _Expect.FOR_IN: _for_in,
        _Expect.FOR_WORD: _ignore,
        _Expect.CASE_WORD: _case_word,
        _Expect.CASE_IN: _case_in,
        _Expect.PATTERN: _pattern,
        _Expect.PATTERN_REST: _ignore,
    }


def _open_substitution(source: Source, start: int) -> Frame:
    return _Commands(source, start, ")")
