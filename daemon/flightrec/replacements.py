"""Whether a later command is a corrected form of a failed one. The error has to say so.

What the error names (the program, the subcommand, the option, the path) must be what was changed;
or the change must be what the error suggests, or what this kind of error calls for.
"""

import re
from collections.abc import Callable

from flightrec.attempt import Attempt, meant_words
from flightrec.change import compare_words, value_of
from flightrec.corrections import (
    called_differently,
    option_corrected,
    requoted,
    slip_corrected,
    word_corrected,
    words_joined,
)
from flightrec.failure_kinds import FailureKind, K
from flightrec.invocation import PYTHON, base_name, word_set
from flightrec.likeness import is_like, is_near, is_one_key_off, is_path_typo, is_typo
from flightrec.proposals import letters_added, suggested
from flightrec.remedy_tables import (
    CHANGING_VERBS,
    DIRECTORY_OPTIONS,
    INSTALLERS,
    MAKING_VERBS,
    OPTIONS_THAT_MEND,
    OTHER_TOOLS,
    SAME_PURPOSE,
)

Rule = Callable[[Attempt], bool]

_EXPLORERS = word_set("cat cd find head less ls more tail tree wc stat file du bat grep rg")
"""With another path these look around; it takes a slip of the keys to make that a correction."""

_INTERPRETERS = word_set("bash sh zsh dash ksh fish source . node ruby perl php Rscript")
_SHELLS = word_set("bash sh zsh dash ksh fish busybox")
_BRANCHES = frozenset(("main", "master", "trunk"))
_LOCATORS = word_set("which whereis")
_USUAL_REMOTE = "origin"


def is_correction(attempt: Attempt) -> bool:
    """Whether the later command corrects the failed one, going by what the error says."""
    if attempt.failed.code != attempt.later.code:
        return False  # inline code is work: it was edited
    if another_place(attempt):
        return False
    if other_shell(attempt):
        return True
    return any(rule(attempt) for rule in RULES.get(attempt.failure.kind, DEFAULT_RULES))


def another_program(attempt: Attempt) -> bool:
    """Whether a program that is not there was replaced by one that is."""
    failed, later = attempt.failed, attempt.later
    missing = attempt.failure.named[0] if attempt.failure.named else failed.program
    if _differ_in_blanks(attempt.failure.line.text, attempt.later_line):
        return True  # [-f x ], cd.., NAME = x
    if missing in failed.wrappers:
        return missing not in later.wrappers and attempt.same_name and _alike(attempt)
    if missing not in (failed.program, failed.name):
        return False
    if attempt.same_name:  # npx tool, python -m tool, ~/bin/tool
        asks = later.asks_information and not failed.asks_information
        return failed.program != later.program and (_alike(attempt) or not asks)
    if missing in _LOCATORS and later.program in ("command", "type"):
        return set(failed.words) <= set(later.words)
    joined = _joined(failed.program, failed.words) == _joined(later.program, later.words)
    return joined or _other_name(missing, attempt)  # docker-compose up, docker compose up


def _other_name(missing: str, attempt: Attempt) -> bool:
    """Whether another program's name is what was meant, or serves the same purpose."""
    failed, later = attempt.failed, attempt.later
    if later.asks_information or failed.asks_information:
        both = later.asks_information and failed.asks_information
        return both and is_typo(missing, later.program) and not same_purpose(missing, later.name)
    if is_typo(missing, later.program):
        return _alike(attempt) or _second_word_corrected(attempt)
    if is_near(missing, later.program) and failed.words == later.words != ():
        return True
    if same_purpose(missing, later.name) or same_purpose(missing, later.program):
        return _same_subject(attempt)
    return attempt.same_chain and bool(set(failed.operands) & {later.program, *later.words})


def _differ_in_blanks(one: str, other: str) -> bool:
    return one != other and "".join(one.split()) == "".join(other.split())


def _joined(program: str, words: tuple[str, ...]) -> str:
    return re.sub(r"[-_\s]", "", program + "".join(words[:1])) + " ".join(words[1:])


def same_purpose(one: str, other: str) -> bool:
    """Whether two programs serve one purpose."""
    one, other = (PYTHON.sub("python3", base_name(name)) for name in (one, other))
    return one == other or any(one in group and other in group for group in SAME_PURPOSE)


def _alike(attempt: Attempt) -> bool:
    """Whether at least half of the failed command's words stayed, or it had none."""
    change = attempt.change
    return len(change.kept) >= len(change.removed) if attempt.failed.words else True


def _second_word_corrected(attempt: Attempt) -> bool:
    """Whether there were two slips in one command: ``gti comit``."""
    change = attempt.change
    one = len(change.removed) == len(change.added) == 1
    return one and is_typo(change.removed[0], change.added[0])


def _same_subject(attempt: Attempt) -> bool:
    """Whether both commands are about the same things, or about nothing in particular."""
    failed, later = attempt.failed, attempt.later
    mine, theirs = (
        {word.removeprefix("./") for word in part.words if not word.startswith("-") and word != "."}
        for part in (failed, later)
    )
    if mine:
        return mine <= theirs
    if attempt.same_chain:
        return True
    return not later.operands and failed.name not in INSTALLERS


def path_corrected(attempt: Attempt) -> bool:
    """Whether the path that the error names became one that differs in a slip."""
    change = attempt.change
    if not attempt.same_name:
        return False
    wrong = [w for w in change.removed if _is_the_named_path(w, attempt)]
    rest = [w for w in change.removed if w not in wrong]
    return not rest and any(
        _is_path_slip(w, right, attempt) or _is_elsewhere(w, right, attempt)
        for w in wrong
        for right in change.added
    )


def _is_path_slip(wrong: str, right: str, attempt: Attempt) -> bool:
    """Whether a path was mistyped; one that only looks around gets less credit."""
    longer = abs(len(wrong) - len(right))
    exchanged = longer == 0 and sorted(wrong.lower()) != sorted(right.lower())
    if attempt.failed.name in _EXPLORERS and (longer > 1 or exchanged):
        return False
    return is_path_typo(wrong, right)


def _is_the_named_path(word: str, attempt: Attempt) -> bool:
    named = attempt.failure.named
    bare = word.removeprefix("./").removeprefix("~/")
    return not named or any(word == n or n.endswith(f"/{bare}") or bare.endswith(n) for n in named)


def _is_elsewhere(wrong: str, right: str, attempt: Attempt) -> bool:
    """Whether it is the same file in another folder, and more than looking around for it."""
    if attempt.failed.name in _EXPLORERS:
        return False
    if right.endswith(f"/{wrong}") or wrong.endswith(f"/{right}"):
        return True
    if _has_another_ending(wrong, right):
        return True
    return _leaves_out(wrong.split("/"), right.split("/"))


def _has_another_ending(wrong: str, right: str) -> bool:
    """Whether a file's name differs in its ending alone: ``a.obj``, ``a.o``; no version."""
    folder, (stem, *endings) = wrong.removesuffix(base_name(wrong)), base_name(wrong).split(".")
    other_folder, (other_stem, *others) = (
        right.removesuffix(base_name(right)),
        base_name(right).split("."),
    )
    return (
        (folder, stem) == (other_folder, other_stem)
        and bool(stem and endings and others)
        and all(ending.isalpha() for ending in (*endings, *others))
    )


def _leaves_out(wrong: list[str], right: list[str]) -> bool:
    """Whether a path is another one less a folder in its middle: ``.venv/activate``."""
    ends = len(wrong) > 1 and wrong[0] == right[0] and wrong[-1] == right[-1]
    rest = iter(right)
    return ends and len(right) > len(wrong) and all(part in rest for part in wrong)


def program_path_corrected(attempt: Attempt) -> bool:
    """Whether it is ``./build.sh`` after ``./buld.sh``."""
    failed, later = attempt.failed, attempt.later
    if failed.program == later.program or "/" not in failed.program:
        return False
    return is_path_typo(failed.program, later.program) and _alike(attempt)


def target_corrected(attempt: Attempt) -> bool:
    """Whether the name that does not exist became one much like it."""
    change = attempt.change
    if not attempt.same_name:
        return False
    named = attempt.failure.named
    wrong = [w for w in change.removed if any(_holds_name(w, n) for n in named)]
    rest = [w for w in change.removed if w not in wrong]
    if not wrong or len(rest) > len(change.kept):
        return False
    meant = meant_words(attempt.output)
    alone = len(change.removed) == len(change.added) == 1
    return any(
        (
            is_like(w, right)
            or is_path_typo(w, right)
            or {w, right} <= _BRANCHES
            or right == _USUAL_REMOTE
            or right in meant
            or (alone and len(w) > 3 and w in named and is_one_key_off(w, right))
        )
        and _without_digits(w) != _without_digits(right)
        for w in wrong
        for right in change.added
    )


def version_corrected(attempt: Attempt) -> bool:
    """Whether a package was asked for in another version, or in whichever there is."""
    change = attempt.change
    if not attempt.same_tool or len(change.removed) != 1 or len(change.added) != 1:
        return False
    asked, instead = change.removed[0], change.added[0]
    package = _VERSION.sub("", asked)
    return package != asked and package == _VERSION.sub("", instead)


_VERSION = re.compile(r"(?<=\w)(?:\[[^\]]*\])?(?:[=<>~!]=?|===|@|:)[\w.,<>=~!*^-]*$")


def named_slip_corrected(attempt: Attempt) -> bool:
    """Whether one word that the error names was mistyped, and nothing else changed."""
    change = attempt.change
    if not attempt.same_name or len(change.removed) != 1 or len(change.added) != 1:
        return False
    wrong, right = change.removed[0], change.added[0]
    if wrong.startswith("-") != right.startswith("-"):
        return False
    return _is_the_named_word(wrong, attempt) and (
        is_typo(wrong, right) or is_path_typo(wrong, right)
    )


def _is_the_named_word(word: str, attempt: Attempt) -> bool:
    return any(word == name or name.endswith(f"/{word}") for name in attempt.failure.named)


def value_corrected(attempt: Attempt) -> bool:
    """Whether the value of the option that the error names became another one."""
    change, failed, later = attempt.change, attempt.failed, attempt.later
    if not attempt.same_tool or len(change.removed) != 1 or len(change.added) != 1:
        return False
    options = [word for word in attempt.failure.named or failed.words if word.startswith("-")]
    return any(
        value_of(option, failed.words) == change.removed[0]
        and value_of(option, later.words) == change.added[0]
        for option in options
    )


def _holds_name(word: str, name: str) -> bool:
    """Whether a word is, or is made with, a name that the error gives; a text is no word."""
    if " " in word:
        return False
    word = word.removeprefix("~")
    return word == name or (len(name) > 2 and name in word) or (len(word) > 2 and word in name)


def other_flavour(attempt: Attempt) -> bool:
    """Whether the same words went to a tool that knows the option (``gdate -d``)."""
    failed, later = attempt.failed, attempt.later
    return (
        not attempt.same_name
        and failed.words == later.words
        and same_purpose(failed.name, later.name)
    )


def _without_digits(word: str) -> str:
    return re.sub(r"\d+", "", word)


def option_added(attempt: Attempt) -> bool:
    """Whether an option was added to the same command that answers this kind of error."""
    change, failed = attempt.change, attempt.failed
    if not attempt.same_tool and not (
        same_purpose(failed.name, attempt.later.name)
        and failed.subcommand == attempt.later.subcommand
    ):
        return False
    table = OPTIONS_THAT_MEND.get(attempt.failure.kind, {})
    fitting = table.get(failed.name, frozenset()) | table.get("*", frozenset())
    added = {w for w in change.added if w.startswith("-")} | set(letters_added(change))
    added |= {w[:2] for w in added if not w.startswith("--")}  # -Ilib
    if not added & fitting and not any(w in fitting for w in change.added):
        return False
    if attempt.failure.kind is K.NOTHING_STAGED:
        return True  # what is committed has no name here; the message may have changed
    return attempt.keeps()


def operands_added(attempt: Attempt) -> bool:
    """Whether what the command was to work on was added, and nothing else changed."""
    change = attempt.change
    added = change.added
    return attempt.same_tool and not change.removed and bool(added) and not added[0].startswith("-")


def variable_as_argument(attempt: Attempt) -> bool:
    """Whether the variable that is missing was given as an argument: ``make OUT=x``."""
    assigned = {w.partition("=")[0] for w in attempt.change.added if "=" in w}
    assigned |= {name.removeprefix("-D") for name in assigned}
    return attempt.same_name and bool(assigned.intersection(attempt.failure.named))


def subcommand_added(attempt: Attempt) -> bool:
    """Whether half of a subcommand was missing: ``kubectl create secret generic db``."""
    change, known = attempt.change, attempt.failed.subcommand.split()
    if not attempt.same_name or change.removed or len(change.added) != 1 or not known:
        return False
    (word,) = change.added
    behind = [*known, word]
    words = list(attempt.later.words)
    return word.isalpha() and behind in (words[i : i + len(behind)] for i in range(len(words)))


def empty_word_dropped(attempt: Attempt) -> bool:
    """Whether an empty word was left out that made the next one a file: ``sed -i '' s/a/b/ f``."""
    change = attempt.change
    return attempt.same_tool and not change.added and set(change.removed) == {""}


def wrapper_corrected(attempt: Attempt) -> bool:
    """Whether the option that the error names was one of a wrapper's: ``timeout --kil-after=1``."""
    failed, later = attempt.failed, attempt.later
    if failed.words != later.words or not attempt.same_name or failed.wrappers[:1] == ():
        return False
    change = compare_words(failed.wrappers, later.wrappers)
    wrong = [w for w in change.removed if w in attempt.failure.named]
    return len(wrong) == len(change.removed) == 1 and any(
        is_like(wrong[0], a) for a in change.added
    )


def tool_corrected(attempt: Attempt) -> bool:
    """Whether a runner was told another tool by a slip: ``npx jets``, ``npx jest``."""
    failed, later = attempt.failed, attempt.later
    same_runner = bool(failed.runner) and failed.runner == later.runner
    return same_runner and is_typo(failed.name, later.name) and failed.words == later.words


def option_dropped(attempt: Attempt) -> bool:
    """Whether an option that makes was left out: ``git checkout -b dev``, ``git checkout dev``."""
    change = attempt.change
    if not attempt.same_tool or change.added or not change.removed:
        return False
    return attempt.keeps() and bool(attempt.kept_things)


def allowed_more(attempt: Attempt) -> bool:
    """Whether an option that forbids was left out: ``--ff-only``."""
    change = attempt.change
    only_options = all(w.startswith("-") for w in (*change.removed, *change.added))
    return attempt.same_tool and bool(change.removed) and only_options and attempt.keeps()


def as_module(attempt: Attempt) -> bool:
    """Whether what is part of a package was run as such: ``python -m pkg.main``."""
    runner, module = attempt.later.runner, attempt.later.name
    return runner[1:] == ("-m",) and attempt.failed.words[:1] in (
        (module,),
        (module.replace(".", "/") + ".py",),
    )


def another_place(attempt: Attempt) -> bool:
    """Whether only where to do it became another place, which is no slip of the first one."""
    change = attempt.change
    if not attempt.same_tool or len(change.removed) != 1 or len(change.added) != 1:
        return False
    was, became = change.removed[0], change.added[0]
    if not (_is_place(was, attempt.failed.words) and _is_place(became, attempt.later.words)):
        return False
    return not (is_path_typo(was, became) or f"/{was}/" in f"/{became}/")


def _is_place(word: str, words: tuple[str, ...]) -> bool:
    """Whether a word tells where, as ``sub`` in ``-C sub``."""
    if word.startswith("-chdir="):
        return True
    return any(value_of(option, words) == word for option in DIRECTORY_OPTIONS)


def other_shell(attempt: Attempt) -> bool:
    """Whether a script was handed to another shell, and nothing else changed."""
    failed, later = attempt.failed, attempt.later
    both_shells = {failed.name, later.name} <= _SHELLS and failed.name != later.name
    return both_shells and failed.words == later.words != ()


def other_interpreter(attempt: Attempt) -> bool:
    """Whether it is the same tool from another place or through a runner (``uv run``)."""
    failed, later = attempt.failed, attempt.later
    if not same_purpose(failed.name, later.name) or failed.program == later.program:
        return False
    if not attempt.keeps():
        return False
    if "/" in later.program or later.runner:
        return True
    return attempt.failure.kind is K.MISSING_MODULE and failed.words == later.words != ()


def through_interpreter(attempt: Attempt) -> bool:
    """Whether it is ``bash run.sh`` after ``./run.sh``."""
    failed, later = attempt.failed, attempt.later
    if "/" not in failed.program or not (later.name in _INTERPRETERS or PYTHON.match(later.name)):
        return False
    return later.words[:1] in ((failed.program,), (failed.program.removeprefix("./"),))


def without_privilege(attempt: Attempt) -> bool:
    """Whether it is the same command without ``sudo``."""
    return (
        attempt.failed.privileged
        and not attempt.later.privileged
        and attempt.same_name
        and attempt.failed.words == attempt.later.words
    )


def other_subcommand(attempt: Attempt) -> bool:
    """Whether it is ``npm install`` after ``npm ci``, where the lock file is the trouble."""
    both = {attempt.failed.subcommand, attempt.later.subcommand}
    return (
        attempt.same_name
        and len(both) == 2
        and both <= {"ci", "install", "i", "sync", "lock"}
        and not attempt.change.removed[1:]
    )


def other_service_manager(attempt: Attempt) -> bool:
    """Whether it is ``service nginx start`` after ``systemctl start nginx``."""
    failed, later = attempt.failed, attempt.later
    if attempt.same_name or not same_purpose(failed.name, later.name):
        return False
    return {*failed.operands, *failed.subcommand.split()} <= set(later.words)


def address_changed(attempt: Attempt) -> bool:
    """Whether a server was given another port."""
    change = attempt.change
    if not attempt.same_tool:
        return False
    gone = [w for w in change.removed if not w.startswith("-")]
    came = [w for w in change.added if not w.startswith("-")]
    return len(came) == 1 and len(gone) <= 1 and re.search(r"\d{2,5}$", came[0]) is not None


def host_corrected(attempt: Attempt) -> bool:
    """Whether a host's misspelled name was mended."""
    change = attempt.change
    return (
        attempt.same_name
        and len(change.removed) == len(change.added) == 1
        and any(n in change.removed[0] for n in attempt.failure.named)
        and is_typo(change.removed[0], change.added[0])
    )


def other_tool(attempt: Attempt) -> bool:
    """Whether the same thing was given to a tool for things of its sort: ``rmdir``, ``rm -r``."""
    failed, later = attempt.failed, attempt.later
    others = OTHER_TOOLS.get(attempt.failure.kind, {}).get(failed.name, frozenset())
    return later.name in others and bool(attempt.kept_things)


def taken_as_it_is(attempt: Attempt) -> bool:
    """Whether what is there already was changed instead of made: ``remote add``, ``set-url``."""
    change = attempt.change
    verbs = [w for w in change.removed if not w.startswith("-")]
    fresh = [w for w in change.added if not w.startswith("-")]
    if not attempt.same_name or not attempt.kept_things or len(verbs) != 1 or len(fresh) != 1:
        return False
    return verbs[0] in MAKING_VERBS and fresh[0] in CHANGING_VERBS


def folder_changed(attempt: Attempt) -> bool:
    """Whether the folder to work on became one above or below: ``cmake .``, ``go run ./cmd``."""
    change = attempt.change
    if not attempt.same_tool or len(change.removed) != 1 or len(change.added) != 1:
        return False
    return any(set(w.rstrip("/").split("/")) <= {".", ".."} for w in change.removed + change.added)


def user_changed(attempt: Attempt) -> bool:
    """Whether it is the same host as another user, where the error is about who it was."""
    change = attempt.change
    if not attempt.same_name or len(change.removed) != 1 or len(change.added) != 1:
        return False
    (was, host), (became, same_host) = (
        (user, rest) if at else ("", user)
        for user, at, rest in (w.partition("@") for w in (change.removed[0], change.added[0]))
    )
    return host == same_host and was != became != ""


def user_option_changed(attempt: Attempt) -> bool:
    """Whether it is the same as another user of a server: ``-U postgres``."""
    change = attempt.change
    if not attempt.same_tool or len(change.removed) != 1 or len(change.added) != 1:
        return False
    before, after = attempt.failed.words, attempt.later.words
    return any(
        value_of(option, before) == change.removed[0] and value_of(option, after) == change.added[0]
        for option in ("-U", "-u", "-l", "--user", "--username")
    )


DEFAULT_RULES: tuple[Rule, ...] = (suggested, words_joined)

RULES: dict[FailureKind, tuple[Rule, ...]] = {
    **dict.fromkeys(
        (*OPTIONS_THAT_MEND, *OTHER_TOOLS), (option_added, other_tool, suggested, words_joined)
    ),
    K.COMMAND_NOT_FOUND: (
        another_program,
        tool_corrected,
        named_slip_corrected,
        through_interpreter,
        suggested,
    ),
    K.NO_UPSTREAM: (option_added, operands_added, suggested, words_joined),
    K.REJECTED: (option_added, allowed_more, suggested, words_joined),
    K.MISSING_VARIABLE: (variable_as_argument, option_added, suggested),
    K.MISSING_LIBRARY: (option_added, operands_added, other_flavour, suggested),
    K.UNKNOWN_SUBCOMMAND: (
        word_corrected,
        suggested,
        option_corrected,
        other_service_manager,
        option_added,
        words_joined,
    ),
    K.UNKNOWN_OPTION: (
        option_corrected,
        slip_corrected,
        subcommand_added,
        wrapper_corrected,
        other_flavour,
        suggested,
        words_joined,
    ),
    K.USAGE: (called_differently, word_corrected, option_corrected, slip_corrected, suggested),
    K.ARGUMENT_COUNT: (called_differently, option_corrected, suggested),
    K.INVALID_VALUE: (
        called_differently,
        value_corrected,
        named_slip_corrected,
        option_corrected,
        word_corrected,
        suggested,
    ),
    K.EMPTY_RESULT: (option_added, other_tool, named_slip_corrected, suggested, words_joined),
    K.SHELL_SYNTAX: (requoted, words_joined),
    K.EXPRESSION_SYNTAX: (called_differently, value_corrected, words_joined, suggested),
    K.MISSING_FILE: (
        path_corrected,
        program_path_corrected,
        as_module,
        empty_word_dropped,
        option_added,
        suggested,
        words_joined,
    ),
    K.MISSING_MANIFEST: (path_corrected, option_added, folder_changed, suggested),
    K.MISSING_TARGET: (target_corrected, option_added, suggested),
    K.MISSING_PACKAGE: (
        target_corrected,
        version_corrected,
        tool_corrected,
        option_corrected,
        suggested,
        words_joined,
    ),
    K.UNKNOWN_REVISION: (target_corrected, path_corrected, option_added, suggested, words_joined),
    K.MANAGED_ENVIRONMENT: (option_added, other_interpreter, suggested),
    K.MISSING_MODULE: (
        other_interpreter,
        as_module,
        tool_corrected,
        named_slip_corrected,
        option_added,
        suggested,
    ),
    K.NOT_EXECUTABLE: (through_interpreter, program_path_corrected, suggested),
    K.RUNNING_AS_ROOT: (without_privilege, suggested),
    K.LOCKFILE: (other_subcommand, option_added, suggested),
    K.NOT_RUNNING: (other_service_manager, option_added, suggested),
    K.PORT_IN_USE: (address_changed, option_added),
    K.DNS: (host_corrected,),
    K.AUTHENTICATION: (
        option_added,
        user_changed,
        user_option_changed,
        suggested,
        words_joined,
    ),
    K.CONNECTION: (),  # another address is another question
    K.OUT_OF_MEMORY: (option_added,),
    K.ALREADY_EXISTS: (option_added, option_dropped, taken_as_it_is, suggested, words_joined),
    K.OTHER: (
        suggested,
        words_joined,
        slip_corrected,
        named_slip_corrected,
        tool_corrected,
    ),
}
"""What counts as a correction, by the kind of error; kinds that are not here: ``DEFAULT_RULES``."""
