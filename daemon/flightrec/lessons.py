"""What there is to say about failures that no command mends: one lesson for each kind.

A site that blocks, a key that is missing, a query without result: no other spelling helps, and the
next agent would try them all again. Such a failure is remembered once for each tool, site and kind.
"""

import re

from flightrec.classify import Failure, FailureKind
from flightrec.generalise import REST, RUNNERS, Draft
from flightrec.rules import Pattern, Remedy, Scope, Trigger

LESSONS: dict[FailureKind, str] = {
    FailureKind.BLOCKED: (
        "the site turns programs away; ask for an official API, an export or another source"
        " instead of trying other headers"
    ),
    FailureKind.EMPTY_RESULT: (
        "an empty answer is an answer: check the name, the filter and the account before asking"
        " again in other words"
    ),
    FailureKind.API_KEY: (
        "the key is not set in this shell; ask the person for it, it cannot be found by searching"
    ),
    FailureKind.AUTHENTICATION: (
        "the credentials are wrong or expired; ask the person to log in, retrying locks accounts"
    ),
    FailureKind.TIMEOUT: (
        "it takes longer than it is given: run it in the background or on less at a time, and"
        " look at its progress"
    ),
    FailureKind.RATE_LIMIT: (
        "too many requests: wait as long as the answer says, then ask for less at a time"
    ),
    FailureKind.MISSING_MODEL: (
        "the model is not installed or named otherwise: list those that are there"
    ),
}

RUN_ANYTHING = (
    frozenset(
        ("", "python", "python3", "node", "deno", "bun", "ruby", "perl", "php", "bash", "sh", "zsh")
    )
    | RUNNERS
)
"""Programs whose name does not say what they were doing; only a site does."""

LESSON = "lesson"
"""The kind of a rule that offers no command."""

_HOST = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://(?:[^/\s@]{1,64}@)?([\w.-]{1,253})", re.ASCII)


def lesson_for(failure: Failure) -> Draft | None:
    """Return what is to be remembered of a failure that no command mends, or None."""
    lesson = LESSONS.get(failure.kind)
    host = _host(failure)
    if lesson is None or not (host or failure.program not in RUN_ANYTHING):
        return None
    words: Pattern = (failure.program, *failure.subcommand.split(), REST)
    trigger = Trigger(failure.kind.value, words, host=host)
    remedy = Remedy(kind=LESSON, lesson=lesson)
    scope = Scope.USER if trigger.host else Scope.PROJECT
    return Draft(trigger, remedy, scope, bound=False, proven=False)


def _host(failure: Failure) -> str:
    """Return the site that the failed command names, or else its error; empty where none."""
    segment = failure.line.segments[failure.segment]
    command = failure.line.text[segment.start : segment.end]
    found = _HOST.search(command) or _HOST.search(failure.run.tail)
    host = found.group(1).lower() if found else ""
    return "" if host == "localhost" or host.startswith("127.") else host
