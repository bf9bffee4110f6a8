"""What a terminal would have shown in the end of what a program wrote.

Done before redaction: colours in the middle of a token would hide it from there.
"""

import re

_PARTIAL_LINE_MARK = re.compile(
    r"(?:\x1b\[[0-9;]{0,16}m){0,6}[^\n\r\x1b]{0,16}(?:\x1b\[[0-9;]{0,16}m){0,6} {8,1000}\r \r{1,2}"
    r"(?:\x1b\[[0-9;]{0,16}[mJK]){0,8}\Z"
)
"""What zsh writes before its prompt, before any hook runs, to keep a line without a newline."""

_ESCAPES = re.compile(
    r"\x1b(?:"
    r"\[[0-9:;<=>?]{0,64}[ -/]{0,4}(?:[@-~]|\Z)"  # CSI: colours, cursor
    r"|[\]PX^_][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c|\Z)"  # OSC, DCS and the like
    r"|[ -/]{0,4}[0-~]"  # the two-byte ones
    r")?"
)
_CUT_ESCAPE = re.compile(r"\A\[?[0-9;?]{1,16}[A-Za-z](?=.)|\A\[[A-Za-z]", re.DOTALL)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")


def clean_output(text: str, *, is_cut: bool = False) -> str:
    """Return ``text`` without escapes and controls, and of each line what was written last.

    ``is_cut`` tells that the text begins anywhere: half an escape may stand there. Takes time in
    proportion to the text, which is a tail of at most 8 KiB.
    """
    if "\x1b" in text or "\r" in text:
        text = _PARTIAL_LINE_MARK.sub("", text)
        if is_cut and "\x1b" in text:
            text = _CUT_ESCAPE.sub("", text)
        text = _ESCAPES.sub("", text)
    if "\x08" in text:
        text = _rub_out(text)
    if "\r" in text:
        lines = text.replace("\r\n", "\n").split("\n")
        text = "\n".join(_last_state(line) if "\r" in line else line for line in lines)
    return _CONTROLS.sub("", text)


def _last_state(line: str) -> str:
    """Return what a line shows that was written over from its beginning, as progress bars are."""
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")


def _rub_out(text: str) -> str:
    """Apply backspaces: spinners, and the overstruck bold of manual pages."""
    shown: list[str] = []
    for character in text:
        if character != "\b":
            shown.append(character)
        elif shown and shown[-1] != "\n":
            shown.pop()
    return "".join(shown)
