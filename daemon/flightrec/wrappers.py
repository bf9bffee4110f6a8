"""Programs that run another program: how many leading words of a command are theirs.

``sudo -u web timeout 5 make`` is about ``make``; the five words before it are set aside when a
command is matched and kept when it is rewritten.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class Wrapper(NamedTuple):
    """How a wrapper's own words end.

    ``valued`` are the options that take the next word as their value: short ones as letters, long
    ones as words. ``operands`` is the number of words between the options and the command.
    With one of the options in ``alone`` it runs no command of its own (``command -v make``).
    """

    valued: str = ""
    operands: int = 0
    assignments: bool = False
    alone: str = ""


_PLAIN = Wrapper()

WRAPPERS: dict[str, Wrapper] = {
    # reserved words and builtins
    "!": _PLAIN,
    "time": Wrapper("f o --format --output"),
    "command": Wrapper(alone="v V"),
    "builtin": _PLAIN,
    "exec": Wrapper("a"),
    "coproc": _PLAIN,
    "-": _PLAIN,
    "noglob": _PLAIN,
    "nocorrect": _PLAIN,
    "repeat": Wrapper(operands=1),
    # another user or environment
    "sudo": Wrapper(
        "C D g h p R r T t U u --chdir --chroot --close-from --command-timeout --group --host"
        " --other-user --prompt --role --type --user",
        assignments=True,
        alone="e K l v V --edit --list --validate --version --help --remove-timestamp",
    ),
    "doas": Wrapper("C u a", alone="L"),
    "pkexec": Wrapper("--user"),
    "env": Wrapper(
        "C u --chdir --unset", assignments=True, alone="S --split-string --help --version"
    ),
    "fakeroot": Wrapper("l s i b --lib --faked"),
    "torsocks": _PLAIN,
    "proxychains": Wrapper("f"),
    "proxychains4": Wrapper("f"),
    "dbus-run-session": Wrapper("--config-file --dbus-daemon"),
    "systemd-inhibit": Wrapper("--what --who --why --mode", alone="--list"),
    "xvfb-run": Wrapper(
        "e f n p s w --error-file --auth-file --server-num --xauth-protocol --server-args --wait"
    ),
    # time, priority, signals, buffering
    "timeout": Wrapper("k s --kill-after --signal", operands=1),
    "gtimeout": Wrapper("k s --kill-after --signal", operands=1),
    "nice": Wrapper("n --adjustment"),
    "ionice": Wrapper("c n --class --classdata", alone="p P u --pid --pgid --uid"),
    "chrt": Wrapper(
        "T P D --sched-runtime --sched-period --sched-deadline", operands=1, alone="p m --pid --max"
    ),
    "taskset": Wrapper(operands=1, alone="p --pid"),
    "nohup": _PLAIN,
    "setsid": _PLAIN,
    "stdbuf": Wrapper("i o e --input --output --error"),
    "unbuffer": _PLAIN,
    "chronic": _PLAIN,
    "eatmydata": _PLAIN,
    "caffeinate": Wrapper("t w"),
    "faketime": Wrapper("f", operands=1),
    "flock": Wrapper("w E --timeout --wait --conflict-exit-code", operands=1, alone="c u"),
}
"""Policy: a wrapper is a line here. Runners (``uv run``, ``npx``, ``poetry run``) are none: which
one is needed is what the person has to learn."""


def count_wrapper_words(texts: Sequence[str]) -> int:
    """Return how many leading words of a command are wrappers with their options and operands.

    A wrapper with nothing behind it (``sudo -v``, ``env``, ``command -v make``) is the program.
    """
    taken = 0
    while taken < len(texts):
        wrapper = WRAPPERS.get(texts[taken].rpartition("/")[2])
        after = None if wrapper is None else _own_words(wrapper, texts, taken + 1)
        if after is None:
            break
        taken = after
    return taken


def _own_words(wrapper: Wrapper, texts: Sequence[str], index: int) -> int | None:
    """Return the index of the wrapped command's first word, None where nothing is wrapped."""
    while index < len(texts) and texts[index].startswith("-"):
        option = texts[index]
        index += 1
        if option == "--":
            break
        names, takes_next = _read_option(option, wrapper.valued.split())
        if not names.isdisjoint(wrapper.alone.split()):
            return None
        index += takes_next
    if wrapper.assignments:
        while index < len(texts) and _ASSIGNMENT.match(texts[index]):
            index += 1
    index += wrapper.operands
    return index if index < len(texts) else None


def _read_option(option: str, valued: list[str]) -> tuple[set[str], bool]:
    """Return the options in a word such as ``-Eu`` and whether the next word is a value of it."""
    if option.startswith("--"):
        return {option.partition("=")[0]}, option in valued
    for place, letter in enumerate(option[1:], start=2):
        if letter in valued:
            return set(option[1:place]), place == len(option)
    return set(option[1:]), False
