"""Whether the error itself proposed what was done then."""

import re

from flightrec.attempt import Attempt, stands_in
from flightrec.change import Change
from flightrec.failure_kinds import K
from flightrec.invocation import INFORMATION_WORDS

_SETTING = re.compile(r"[a-z]\w*(?:\.\w+)+=")


def suggested(attempt: Attempt) -> bool:
    """Whether something was put in that the error proposes, and nothing of weight changed."""
    if spelled_out(attempt):
        return True
    if attempt.later.asks_information or attempt.failed.asks_information:
        return False
    if not attempt.same_name:
        return _another_command_suggested(attempt)
    if not attempt.same_tool:
        return _subcommand_suggested(attempt)
    change = attempt.change
    fresh = [w for w in (*change.added, *letters_added(change)) if w not in INFORMATION_WORDS]
    if not any(_is_proposed_option(w, attempt) for w in fresh):
        return False
    return attempt.keeps()


def spelled_out(attempt: Attempt) -> bool:
    """Whether the error holds the very command that was run then, word for word."""
    text, later = attempt.later_text, attempt.later
    if not attempt.same_name or text == attempt.failed_text:
        return False
    if later.asks_information:
        return attempt.failed.asks_information and stands_in(text, attempt.prose)
    about = any(word.startswith(attempt.failed.operands) for word in later.words)
    if (attempt.failed.operands or not attempt.same_tool) and not about:
        return False  # what is to be done first
    return len(later.words) > 1 and stands_in(text, attempt.prose)


def _is_proposed_option(word: str, attempt: Attempt) -> bool:
    """Whether an option, or a setting like ``core.x=y``, is what the error proposes."""
    if not word.startswith("-") and not _SETTING.match(word):
        return False
    if stands_in(word, attempt.prose):
        return True
    # --allow-unrelated-histories after "unrelated histories": the option says what the error says
    parts = [p for p in re.split(r"[-.]", word.strip("-").partition("=")[0]) if len(p) > 3]
    lowered = attempt.prose.lower()
    return len(parts) > 1 and sum(p in lowered for p in parts) >= len(parts) - 1


def _subcommand_suggested(attempt: Attempt) -> bool:
    """Whether the error proposes this other subcommand, used on the same thing."""
    later = attempt.later
    if not attempt.change.added or not later.subcommand:
        return False
    spelled = stands_in(f"{later.program} {later.subcommand}", attempt.prose)
    last = re.escape(later.subcommand.split()[-1])
    if not spelled and not re.search(rf"['\"]{last}['\"] (?:sub)?command", attempt.prose):
        return False
    return bool(attempt.kept_things)


def _another_command_suggested(attempt: Attempt) -> bool:
    """Whether the error names this other tool with its first word, used on the same thing."""
    later = attempt.later
    if not later.words or attempt.failure.kind in (K.OTHER, K.USAGE):
        return False
    return bool(attempt.kept_things) and stands_in(
        f"{later.program} {later.words[0]}", attempt.prose
    )


def letters_added(change: Change) -> list[str]:
    """Return the letters by which a cluster of short options grew (``-sS`` → ``-sSk``)."""
    added = []
    for after in change.added:
        if not re.fullmatch(r"-[A-Za-z]{2,8}", after):
            continue
        before = next(
            (w for w in change.removed if re.fullmatch(r"-[A-Za-z]{1,8}", w) and w[1] in after), ""
        )
        added += [f"-{letter}" for letter in after[1:] if letter not in before]
    return added
