"""Is a later command a corrected form of a failed one? The error has to say so.

What the error names (the program, the subcommand, the option, the path) must be what was changed;
or the change must be what the error suggests, or what this kind of error calls for.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flightrec.change import Change
from flightrec.classify import Failure
from flightrec.failure_kinds import FailureKind, K
from flightrec.invocation import INFORMATION_WORDS, PYTHON, Invocation
from flightrec.likeness import is_like, is_near, is_path_typo, is_typo
from flightrec.remedy_tables import OPTIONS_THAT_MEND, SAME_PURPOSE, SCRIPT_RUNNERS, SYNONYMS

_SHELL_CHARACTERS = re.compile(r"[\[\]*?(){}!&;|<>$#~^]")
_EVERYDAY = frozenset(("the", "and", "for", "not", "with", "run", "use", "file", "a", "to", "of"))


@dataclass(frozen=True, slots=True)
class Attempt:
    """A failed command and a later one that passed, side by side.

    ``output`` is what the failed one printed, plain, ``prose`` the same without its list of options;
    ``same_chain`` tells that the lines around the two are the same but for these segments.
    """

    failure: Failure
    failed: Invocation
    later: Invocation
    change: Change
    output: str
    prose: str
    same_chain: bool
    failed_text: str
    later_text: str


Rule = Callable[[Attempt], bool]


_EXPLORERS = frozenset(
    "cat cd find head less ls more tail tree wc stat file du bat grep rg".split()
)


def is_correction(attempt: Attempt) -> bool:
    """Whether the later command corrects the failed one, going by what the error says."""
    if attempt.failed.code != attempt.later.code and not _is_expression(attempt):
        return False
    return any(rule(attempt) for rule in RULES.get(attempt.failure.kind, DEFAULT_RULES))


def _is_expression(attempt: Attempt) -> bool:
    """Whether the code that differs is a one-line expression which the shell or tool rejected."""
    short = max(len(attempt.failed.code), len(attempt.later.code)) <= 80
    return short and attempt.failure.kind is K.SHELL_SYNTAX and attempt.failed.name == "awk"


def same_tool(attempt: Attempt) -> bool:
    """Whether both run one tool with one subcommand."""
    return (
        attempt.failed.name == attempt.later.name
        and attempt.failed.subcommand == attempt.later.subcommand
    )


def another_program(attempt: Attempt) -> bool:
    """A program that is not there, replaced by one that is."""
    failed, later = attempt.failed, attempt.later
    missing = attempt.failure.named[0] if attempt.failure.named else failed.program
    if missing in failed.wrappers:
        return missing not in later.wrappers and failed.name == later.name and _alike(attempt)
    if missing not in (failed.program, failed.name):
        return False
    if failed.name == later.name:  # npx tool, python -m tool, ~/bin/tool
        return failed.program != later.program and (_alike(attempt) or later.words == failed.words)
    if _joined(failed.program, failed.words) == _joined(later.program, later.words):
        return True  # docker-compose up, docker compose up
    if later.asks_information and failed.asks_information:
        return is_typo(missing, later.program) and not _same_purpose(missing, later.name)
    if later.asks_information:
        return False
    if is_typo(missing, later.program):
        return _alike(attempt) or _second_word_corrected(attempt)
    if _same_purpose(missing, later.name) or _same_purpose(missing, later.program):
        return _same_subject(attempt)
    return attempt.same_chain and bool(set(failed.operands) & {later.program, *later.words})


def _joined(program: str, words: tuple[str, ...]) -> str:
    return re.sub(r"[-_\s]", "", program + "".join(words[:1])) + " ".join(words[1:])


def _same_purpose(one: str, other: str) -> bool:
    one, other = (PYTHON.sub("python3", os.path.basename(name)) for name in (one, other))
    return one == other or any(one in group and other in group for group in SAME_PURPOSE)


def _alike(attempt: Attempt) -> bool:
    """Whether at least half of the failed command's words stayed, or it had none."""
    change = attempt.change
    return len(change.kept) >= len(change.removed) if attempt.failed.words else True


def _second_word_corrected(attempt: Attempt) -> bool:
    """``gti comit`` → ``git commit``: two slips in one command."""
    change = attempt.change
    return (
        len(change.removed) == 1
        and len(change.added) == 1
        and is_typo(change.removed[0], change.added[0])
    )


def _same_subject(attempt: Attempt) -> bool:
    """Whether both commands are about the same thing, or about nothing in particular."""
    failed, later = attempt.failed, attempt.later
    if failed.words == later.words:
        return bool(failed.words) or attempt.same_chain or not later.operands
    if failed.name == later.name:
        return _alike(attempt)
    mine = {word for word in failed.words if not word.startswith("-")}
    theirs = {word for word in later.words if not word.startswith("-")}
    if mine and theirs and mine & theirs:
        return len(mine & theirs) * 2 >= len(mine)
    if not mine:
        return len(theirs) <= 1 or attempt.same_chain
    return False


def word_corrected(attempt: Attempt) -> bool:
    """The word that the error names, replaced by what was meant; the rest much the same."""
    change = attempt.change
    if attempt.failed.name != attempt.later.name:
        return False
    named = _typed_names(attempt)
    named = named or attempt.failed.subcommand.split()[-1:]
    wrong = [w for w in change.removed if w in named]
    if not wrong:
        return _word_put_before(attempt, named)
    rest = [w for w in change.removed if w not in wrong]
    if len(rest) > max(1, len(change.kept)):
        return False
    added = [w for w in change.added if w not in INFORMATION_WORDS or _is_slip_of(w, wrong)]
    return any(_is_meant(w, right, rest, attempt) for w in wrong for right in added)


def _is_slip_of(right: str, wrong: Sequence[str]) -> bool:
    return any(is_typo(word, right) for word in wrong)


def _typed_names(attempt: Attempt) -> list[str]:
    """Return the words of the failed command that the error names, as they were typed."""
    named = {name.strip(".-") for name in attempt.failure.named}
    return [word for word in attempt.failed.words if word.strip(".-") in named]


def _is_meant(wrong: str, right: str, rest: Sequence[str], attempt: Attempt) -> bool:
    """Whether a word is what was meant by the one that the error names."""
    meant = meant_words(attempt.output)
    if wrong in attempt.failed.subcommand.split() and right in attempt.later.operands:
        return False  # an operand of another subcommand
    part = wrong in re.split(r"[-:/_.]", right)
    if meant and right not in meant and not part and not is_typo(wrong, right):
        return False
    if is_like(wrong, right) or _is_synonym(wrong, right, attempt):
        return True
    if rest or right.startswith("-"):
        return False
    if meant:
        return right in meant
    # Nothing is proposed: then only a word that is near, or a line that is the same in all else.
    return is_near(wrong, right) or (
        len(attempt.change.added) == 1
        and bool(_operands_kept(attempt))
        and attempt.failed.subcommand.split()[:1] != attempt.later.subcommand.split()[:1]
    )


def _word_put_before(attempt: Attempt, named: Sequence[str]) -> bool:
    """``npm build`` → ``npm run build``, ``systemctl web start`` → ``systemctl start web``."""
    change = attempt.change
    if change.removed or not named:
        return False
    if not change.added:
        return change.moved
    if attempt.failed.name in SCRIPT_RUNNERS and change.added in (("run",), ("run-script",)):
        return True
    return len(change.added) <= 2 and any(
        f"{word} {name}" in attempt.output for word in change.added for name in named
    )


_MEANT = re.compile(
    r"(?i)(?:did you mean|most similar|similar commands?|similar choices?|maybe you meant|perhaps you"
    r"|closest|meinten sie|vouliez-vous|quisiste decir|ähnlich|ressemblant)"
)


def meant_words(output: str) -> frozenset[str]:
    """Return the words that an error proposes after a ``did you mean`` of its own."""
    match = _MEANT.search(output)
    if match is None:
        return frozenset()
    return frozenset(re.findall(r"[\w.:/@+-]{2,60}", output[match.end() : match.end() + 400]))


def _operands_kept(attempt: Attempt) -> set[str]:
    return set(attempt.failed.operands) & set(attempt.later.operands)


def _is_synonym(wrong: str, right: str, attempt: Attempt) -> bool:
    if not any(wrong in group and right in group for group in SYNONYMS):
        return False
    return attempt.failed.operands == attempt.later.operands or bool(_operands_kept(attempt))


def _is_proposed(word: str, output: str) -> bool:
    """Whether a word stands in the output on its own."""
    if len(word) < 2 or word.lower() in _EVERYDAY:
        return False
    pattern = rf"(?<![\w-]){re.escape(word)}(?![\w-])"
    return re.search(pattern, output) is not None


def slip_corrected(attempt: Attempt) -> bool:
    """A slip in one word, where the error shows its usage instead of naming the word."""
    change = attempt.change
    if attempt.failed.name != attempt.later.name or not change.removed or change.moved:
        return False
    slips = [w for w in change.removed if any(_is_clear_slip(w, a) for a in change.added)]
    if not slips:
        return False
    if attempt.failure.kind is K.OTHER:
        verbs = [w for w in attempt.failed.words if not w.startswith("-")][:1]
        verbs += attempt.failed.subcommand.split()
        plain_words = all(w in verbs and w.isalpha() for w in slips)
        return plain_words and len(change.removed) == len(change.added) == 1
    return len(change.removed) <= 2


def _is_clear_slip(wrong: str, right: str) -> bool:
    bare, meant = wrong.strip("-"), right.strip("-")
    return len(bare) > 3 and is_typo(bare, meant)


def option_corrected(attempt: Attempt) -> bool:
    """The option that the error names, replaced, moved or left out; the rest much the same."""
    change = attempt.change
    if not _same_call(attempt):
        return False
    named = set(attempt.failure.named)
    dropped = [w for w in change.removed if _is_named_option(w, named)]
    if not dropped:
        if change.removed and any(
            w.startswith("-") and is_like(w, a) for w in change.removed for a in change.added
        ):
            return True
        return change.moved and not change.removed and bool(named & set(change.kept))
    rest = [w for w in change.removed if w not in dropped]
    unexplained = [w for w in rest if not any(is_like(w, a) for a in change.added)]
    return len(unexplained) <= max(1, len(change.kept))


def _is_named_option(word: str, named: set[str]) -> bool:
    if not word.startswith("-"):
        return False
    if word in named:
        return True
    # -xq: the error names the letter
    return not word.startswith("--") and any(
        len(n) == 2 and n.startswith("-") and n[1] in word[1:] for n in named
    )


def _same_call(attempt: Attempt) -> bool:
    """Whether both are one tool with one subcommand, or with a subcommand that was mended too."""
    if attempt.failed.name != attempt.later.name:
        return False
    before, after = attempt.failed.subcommand, attempt.later.subcommand
    if before == after or is_typo(before, after):
        return True
    return not after and any(is_typo(before, word.lstrip("-")) for word in attempt.change.added)


def called_differently(attempt: Attempt) -> bool:
    """The tool rejected how it was called, and was then called on the same things otherwise."""
    change = attempt.change
    if not same_tool(attempt) or attempt.later.asks_information or attempt.failed.asks_information:
        return False
    if change.nothing:
        return attempt.failed_text != attempt.later_text
    if change.joined:
        return True
    if not change.removed and not attempt.failed.operands:
        return True  # an argument was missing
    if change.moved and not change.removed and not change.added:
        return True
    kept = {w for w in change.kept if w not in attempt.failed.subcommand.split()}
    if not kept and change.removed and not attempt.failure.named:
        return False
    if kept:
        return len(change.removed) <= max(2, len(kept) + 1)
    return not change.added and bool(set(change.removed) & set(attempt.failure.named))


def requoted(attempt: Attempt) -> bool:
    """The same text but for quotes, backslashes and blanks."""
    before, after = (_unquoted(t) for t in (attempt.failed_text, attempt.later_text))
    if "noglob" in attempt.later.wrappers and "noglob" not in attempt.failed.wrappers:
        return before == after
    if not before or attempt.failed_text == attempt.later_text:
        return False
    if before == after:
        return True
    if attempt.failed.name != attempt.later.name or "\n" in attempt.failed_text:
        return False
    # What the shell stumbled over was spelled otherwise: only words with its own characters differ.
    gone, came = set(before.split()) - set(after.split()), set(after.split()) - set(before.split())
    return bool(gone) and all(
        _SHELL_CHARACTERS.search(word) and any(_same_letters(word, other) for other in came)
        for word in gone
    )


def _same_letters(one: str, other: str) -> bool:
    one, other = (re.sub(r"\W", "", word) for word in (one, other))
    return one == other or (min(len(one), len(other)) > 2 and (one in other or other in one))


def _unquoted(text: str) -> str:
    return " ".join(re.sub(r"[\\'\"]", "", text).split())


def words_joined(attempt: Attempt) -> bool:
    """Several words became one: quotes had been forgotten."""
    return attempt.failed.name == attempt.later.name and bool(attempt.change.joined)


def path_corrected(attempt: Attempt) -> bool:
    """The path that the error names, replaced by one that differs in a slip."""
    change = attempt.change
    if attempt.failed.name != attempt.later.name:
        return False
    if words_joined(attempt):
        return True
    wrong = [w for w in change.removed if _is_the_named_path(w, attempt)]
    rest = [w for w in change.removed if w not in wrong]
    return not rest and any(
        is_path_typo(w, right) or _is_elsewhere(w, right, attempt)
        for w in wrong
        for right in change.added
    )


def _is_elsewhere(wrong: str, right: str, attempt: Attempt) -> bool:
    """Whether it is the same file in another folder, and more than looking around for it."""
    if attempt.failed.name in _EXPLORERS:
        return False
    return right.endswith(f"/{wrong}") or wrong.endswith(f"/{right}")


def _is_the_named_path(word: str, attempt: Attempt) -> bool:
    named = attempt.failure.named
    if not named:
        return True
    return any(
        word == n or n.endswith(f"/{word.removeprefix('./')}") or word.endswith(n) for n in named
    )


def program_path_corrected(attempt: Attempt) -> bool:
    """``./buld.sh`` → ``./build.sh``."""
    failed, later = attempt.failed, attempt.later
    if failed.program == later.program or "/" not in failed.program:
        return False
    return is_path_typo(failed.program, later.program) and _alike(attempt)


def target_corrected(attempt: Attempt) -> bool:
    """The name that the error says does not exist, replaced by one much like it."""
    change = attempt.change
    if attempt.failed.name != attempt.later.name:
        return False
    named = attempt.failure.named
    wrong = [w for w in change.removed if any(n and (n in w or w in n) for n in named)]
    rest = [w for w in change.removed if w not in wrong]
    if not wrong or len(rest) > len(change.kept):
        return False
    return any(
        (is_like(w, right) or _is_synonym_name(w, right) or _is_proposed(right, attempt.output))
        and _same_but_digits(w) != _same_but_digits(right)
        for w in wrong
        for right in change.added
    )


def _is_synonym_name(wrong: str, right: str) -> bool:
    return {wrong, right} <= {"main", "master", "trunk", "develop", "dev"}


def _same_but_digits(word: str) -> str:
    return re.sub(r"\d+", "", word)


def option_added(attempt: Attempt) -> bool:
    """An option that answers this kind of error, added to the same command."""
    change = attempt.change
    if not same_tool(attempt) and not _same_purpose(attempt.failed.name, attempt.later.name):
        return False
    table = OPTIONS_THAT_MEND.get(attempt.failure.kind, {})
    fitting = table.get(attempt.failed.name, frozenset()) | table.get("*", frozenset())
    added = {w for w in change.added if w.startswith("-")} | set(_letters_added(change))
    added |= {w[:2] for w in added if not w.startswith("--")}  # -Ilib
    if not added & fitting and not any(w in fitting for w in change.added):
        return False
    rest = [w for w in change.removed if not w.startswith("-")]
    return len(rest) <= (1 if attempt.failure.kind is K.MISSING_TARGET else 0)


def _letters_added(change: Change) -> list[str]:
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


def suggested(attempt: Attempt) -> bool:
    """Something that the error's own text proposes was put in, and nothing else of weight changed."""
    change = attempt.change
    if spelled_out(attempt):
        return True
    if attempt.later.asks_information or attempt.failed.asks_information:
        return False
    if attempt.failed.name != attempt.later.name:
        return _another_command_suggested(attempt)
    if attempt.failed.subcommand != attempt.later.subcommand:
        return _subcommand_suggested(attempt)
    fresh = [w for w in (*change.added, *_letters_added(change)) if w not in INFORMATION_WORDS]
    if not any(_is_proposed_option(w, attempt) for w in fresh):
        return False
    rest = [w for w in change.removed if not w.startswith("-") or w in attempt.failure.named]
    return len(rest) <= 1


def spelled_out(attempt: Attempt) -> bool:
    """The error holds the very command that was run then, word for word."""
    text = attempt.later_text
    if text == attempt.failed_text or len(attempt.later.words) < 1:
        return False
    if attempt.failed.name != attempt.later.name:
        return False
    if attempt.later.asks_information and not attempt.failed.asks_information:
        return False
    if len(attempt.later.words) < 2 and not attempt.later.asks_information:
        return False
    return _stands_alone(text, attempt.prose)


def _stands_alone(text: str, output: str) -> bool:
    pattern = rf"(?<![\w/-]){re.escape(text)}(?![\w-])"
    return re.search(pattern, output) is not None


def _is_proposed_option(word: str, attempt: Attempt) -> bool:
    if not word.startswith("-"):
        return False
    if _is_proposed(word, attempt.prose):
        return True
    # --allow-unrelated-histories after "unrelated histories": the option says what the error says
    parts = [p for p in word.strip("-").split("-") if len(p) > 3]
    lowered = attempt.prose.lower()
    return len(parts) > 1 and sum(p in lowered for p in parts) >= len(parts) - 1


_SYNOPSIS = re.compile(r"(?i)^\s*(?:usage\b|or:|-{1,2}[\w\[]|\[)|\[-{1,2}\w")


def prose(output: str) -> str:
    """Return an output without its list of options and synopsis: what proposes, not what lists."""
    return "\n".join(line for line in output.splitlines() if not _SYNOPSIS.search(line[:200]))


def _subcommand_suggested(attempt: Attempt) -> bool:
    """Another subcommand of the same tool, which the error proposes, on the same thing."""
    failed, later = attempt.failed, attempt.later
    if not _stands_alone(f"{later.program} {later.subcommand}", attempt.prose):
        return False
    if failed.operands:
        return bool(set(failed.operands) & set(later.words))
    rest = [w for w in later.words if w not in later.subcommand.split()]
    return all(_is_proposed(w, attempt.prose) for w in rest)


def _another_command_suggested(attempt: Attempt) -> bool:
    later = attempt.later
    if not later.words or attempt.failure.kind in (K.OTHER, K.USAGE):
        return False
    phrase = f"{later.program} {later.words[0]}"
    shared = set(attempt.failed.operands) & set(later.words)
    return phrase in attempt.output and (bool(shared) or not attempt.failed.operands)


def other_interpreter(attempt: Attempt) -> bool:
    """The same tool from another place or through a runner: ``.venv/bin/pip``, ``uv run``."""
    failed, later = attempt.failed, attempt.later
    if not _same_purpose(failed.name, later.name) or failed.program == later.program:
        return False
    if failed.name != later.name and not later.program.endswith(f"bin/{later.name}"):
        return failed.words == later.words and bool(failed.words)
    return "/" in later.program or bool(later.runner) or failed.words == later.words


def through_interpreter(attempt: Attempt) -> bool:
    """``./run.sh`` → ``bash run.sh``."""
    failed, later = attempt.failed, attempt.later
    if "/" not in failed.program or not (later.name in _INTERPRETERS or PYTHON.match(later.name)):
        return False
    return later.words[:1] in ((failed.program,), (failed.program.removeprefix("./"),))


_INTERPRETERS = frozenset("bash sh zsh dash ksh fish source . node ruby perl php Rscript".split())


def without_privilege(attempt: Attempt) -> bool:
    """The same command without ``sudo``."""
    return (
        attempt.failed.privileged
        and not attempt.later.privileged
        and attempt.failed.name == attempt.later.name
        and _alike(attempt)
    )


def other_subcommand(attempt: Attempt) -> bool:
    """``npm ci`` → ``npm install`` where the lock file is the trouble."""
    failed, later = attempt.failed, attempt.later
    return (
        failed.name == later.name
        and {failed.subcommand, later.subcommand} <= {"ci", "install", "i", "sync", "lock"}
        and not attempt.change.removed[1:]
    )


def other_service_manager(attempt: Attempt) -> bool:
    """``systemctl start nginx`` → ``service nginx start`` where no systemd runs."""
    return (
        _same_purpose(attempt.failed.name, attempt.later.name)
        and (attempt.failed.name != attempt.later.name)
        and set(attempt.failed.operands + tuple(attempt.failed.subcommand.split()))
        <= set(attempt.later.words)
    )


def address_changed(attempt: Attempt) -> bool:
    """Another port for a server whose port is taken."""
    change = attempt.change
    if not same_tool(attempt):
        return False
    gone = [w for w in change.removed if not w.startswith("-")]
    came = [w for w in change.added if not w.startswith("-")]
    return len(came) == 1 and len(gone) <= 1 and re.search(r"\d{2,5}$", came[0]) is not None


def host_corrected(attempt: Attempt) -> bool:
    """A host's name, misspelled."""
    change = attempt.change
    return (
        attempt.failed.name == attempt.later.name
        and len(change.removed) == len(change.added) == 1
        and any(n in change.removed[0] for n in attempt.failure.named)
        and is_typo(change.removed[0], change.added[0])
    )


DEFAULT_RULES: tuple[Rule, ...] = (suggested, words_joined)

RULES: dict[FailureKind, tuple[Rule, ...]] = {
    K.COMMAND_NOT_FOUND: (another_program, through_interpreter, suggested),
    K.UNKNOWN_SUBCOMMAND: (
        word_corrected,
        suggested,
        option_corrected,
        other_service_manager,
        words_joined,
    ),
    K.UNKNOWN_OPTION: (option_corrected, slip_corrected, suggested, words_joined),
    K.USAGE: (called_differently, word_corrected, option_corrected, slip_corrected, suggested),
    K.ARGUMENT_COUNT: (called_differently, option_corrected, suggested),
    K.INVALID_VALUE: (called_differently, option_corrected, word_corrected, suggested),
    K.SHELL_SYNTAX: (requoted, words_joined),
    K.EXPRESSION_SYNTAX: (called_differently, words_joined, suggested),
    K.MISSING_FILE: (path_corrected, program_path_corrected, option_added, suggested, words_joined),
    K.MISSING_MANIFEST: (path_corrected, suggested),
    K.MISSING_TARGET: (target_corrected, option_added, suggested),
    K.MISSING_PACKAGE: (target_corrected, option_corrected, suggested, words_joined),
    K.UNKNOWN_REVISION: (target_corrected, path_corrected, suggested, words_joined),
    K.MANAGED_ENVIRONMENT: (option_added, other_interpreter, suggested),
    K.MISSING_MODULE: (other_interpreter, option_added, suggested),
    K.NOT_EXECUTABLE: (through_interpreter, program_path_corrected, suggested),
    K.RUNNING_AS_ROOT: (without_privilege, suggested),
    K.LOCKFILE: (other_subcommand, option_added, suggested),
    K.NOT_RUNNING: (other_service_manager, suggested),
    K.PORT_IN_USE: (address_changed, option_added),
    K.DNS: (host_corrected,),
    K.CONNECTION: (),
    K.OUT_OF_MEMORY: (option_added,),
    K.ALREADY_EXISTS: (option_added, suggested),
    K.OTHER: (suggested, words_joined, slip_corrected),
}
for _kind in OPTIONS_THAT_MEND:
    RULES.setdefault(_kind, (option_added, suggested, words_joined))
