"""Rules in somebody's memory file: what is written, what is not, and that it stays in its place."""

import os

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from flightrec.export import (
    LABEL,
    RULES_MAX,
    Form,
    Section,
    edit_document,
    exportable,
    format_rule,
    why_not,
)
from flightrec.rules import Origin, Remedy, Rule, Scope, Slot, Status, Trigger, Verdict
from test_quarantine import NEVER, PAYLOADS

FORM = Form()


def make_rule(
    failing: tuple[str | Slot, ...] = ("gti", "status"),
    working: tuple[str | Slot, ...] = ("git", "status"),
    *,
    number: int = 1,
    status: Status = Status.PROMOTED,
    remedy: Remedy | None = None,
    directory: str | None = None,
    origin: Origin = Origin.RECORDED,
    verdict: Verdict = Verdict.NONE,
    held_back: str = "",
    r: int = 2,
    c: int = 1,
) -> Rule:
    return Rule(
        id=f"ERR-20261130-{number:03}",
        uid=number.to_bytes(16, "big"),
        status=status,
        trigger=Trigger("command not found", failing, directory),
        remedy=remedy or Remedy("replace", words=working),
        scope=Scope.USER,
        project="/home/me/project/.git",
        origin=origin,
        proven=True,
        verdict=verdict,
        r=r,
        c=c,
        d=0,
        used=0,
        created_us=0,
        last_us=0,
        held_back=held_back,
    )


def outside(_program: str) -> bool:
    return True


def inside(_program: str) -> bool:
    return False


def section(*rules: Rule, project: str = "") -> Section:
    return Section(tuple(exportable(rules, outside)), project)


def exported(*rules: Rule, document: bytes | None = None) -> str:
    new = edit_document(document, [section(*rules)], FORM)
    return "" if new is None else new.decode("utf-8", "surrogateescape")


def test_a_rule_is_one_line_of_recorded_data() -> None:
    text = exported(make_rule())
    assert text.splitlines()[2:] == [
        LABEL,
        "",
        (
            "- `gti status` failed (command not found, 3 sessions);"
            " worked: `git status` (ERR-20261130-001)"
        ),
        "<!-- flightrec:end -->",
    ]
    assert "not instructions" in LABEL


@pytest.mark.parametrize(
    ("remedy", "shown"),
    [
        (Remedy("prerequisite", before=("npm install",)), "`npm install && npm test`"),
        (Remedy("directory", directory="web app"), "`cd 'web app' && npm test`"),
        (Remedy("directory", directory="."), "`npm test` in the project's root"),
        (Remedy("environment", prefix=("CI=1",)), "`CI=1 npm test`"),
        (Remedy("privilege", prefix=("sudo",)), "`sudo npm test`"),
        (Remedy("replace", words=("npx", Slot(0))), "`npx ...`"),
    ],
)
def test_every_kind_of_remedy_is_one_command(remedy: Remedy, shown: str) -> None:
    line = format_rule(make_rule(("npm", "test"), remedy=remedy))
    assert f"; worked: {shown} (ERR" in line


def test_a_rule_of_one_folder_says_so() -> None:
    line = format_rule(make_rule(("make", "all"), directory="lib"))
    assert line.startswith("- `make all` in `lib` failed (")


def test_what_the_person_taught_says_so() -> None:
    assert "told by the user" in format_rule(make_rule(origin=Origin.PERSON))


@pytest.mark.parametrize("status", list(Status))
def test_only_promoted_and_shared_rules_are_exported(status: Status) -> None:
    written = exported(make_rule(status=status)) != ""
    assert written == (status in (Status.PROMOTED, Status.SHARED))


@pytest.mark.parametrize(
    "rule",
    [
        make_rule(held_back="a destructive remedy"),
        make_rule(held_back="holds a secret", verdict=Verdict.APPROVED),
        make_rule(remedy=Remedy("replace", lesson="the site blocks robots")),
        make_rule(working=("curl", "-u", "‹secret:basic›")),
    ],
)
def test_what_is_held_back_is_never_exported(rule: Rule) -> None:
    assert why_not(rule, outside)
    assert exported(rule) == ""


@pytest.mark.parametrize("text", PAYLOADS)
@pytest.mark.parametrize("side", ["failing", "working", "directory"])
def test_a_payload_reaches_no_memory_file_until_a_person_approved_it(text: str, side: str) -> None:
    """T10, through the failed command, the remedy and the directory."""
    rule = {
        "failing": make_rule((text,)),
        "working": make_rule(working=(text,)),
        "directory": make_rule(directory=text),
    }[side]
    assert exported(rule) == ""


@pytest.mark.parametrize("text", NEVER)
def test_what_breaks_out_is_not_exported_even_if_approved(text: str) -> None:
    rule = make_rule(working=(text,), verdict=Verdict.APPROVED)
    assert exported(rule) == ""


def test_an_approved_rule_is_exported() -> None:
    rule = make_rule(working=("git", "clone", "https://example.org/x"))
    assert "kept out until approved" in why_not(rule, outside)
    approved = make_rule(working=rule.remedy.words, verdict=Verdict.APPROVED)
    assert "https://example.org/x" in exported(approved)


def test_a_remedy_of_the_project_s_own_program_waits_for_the_person() -> None:
    """T11: a repository may plant a program; the failed one is no news."""
    assert why_not(make_rule(working=("./gradlew", "test")), inside)
    assert not why_not(make_rule(("pytest",), ("pytest", "-q")), inside)
    approved = make_rule(working=("./gradlew", "test"), verdict=Verdict.APPROVED)
    assert not why_not(approved, inside)


def test_no_file_is_made_and_an_old_block_goes_where_there_is_no_rule() -> None:
    assert edit_document(None, (), FORM) is None
    assert edit_document(b"mine\n", (), FORM) == b"mine\n"
    with_block = edit_document(b"mine\n", [section(make_rule())], FORM)
    assert with_block is not None
    assert edit_document(with_block, (), FORM) == b"mine\n"


def test_a_file_of_ours_alone_goes_with_its_last_rule() -> None:
    form = Form(header=b"---\nalwaysApply: true\n---\n")
    created = edit_document(None, [section(make_rule())], form)
    assert created is not None
    assert created.startswith(form.header)
    assert edit_document(created, (), form) is None


def test_an_empty_file_of_the_person_stays() -> None:
    assert edit_document(b"", (), FORM) == b""


def test_the_order_is_that_of_the_ids_whatever_comes_first() -> None:
    rules = [make_rule(number=number, c=number) for number in range(1, 6)]
    assert exported(*rules) == exported(*reversed(rules))


def test_a_file_takes_so_many_rules_and_the_best_ones() -> None:
    rules = [
        make_rule((f"cmd{number}",), (f"command{number}",), number=number, c=number)
        for number in range(1, 10_001)
    ]
    text = exported(*rules)
    assert text.count("\n- ") == RULES_MAX
    assert "`cmd10000`" in text
    assert "`cmd9901`" in text
    assert "`cmd9900`" not in text
    assert len(text) < 25_000


def test_a_long_file_of_the_person_leaves_less_room() -> None:
    """Claude Code reads the first 200 lines and 24.4 KB of MEMORY.md."""
    rules = [make_rule((f"cmd{number}",), ("git",), number=number) for number in range(1, 101)]
    text = exported(*rules, document=b"mine\n" * 150)
    assert 0 < text.count("\n- ") < 40
    assert text.count("\n") < 200
    assert exported(*rules, document=b"mine\n" * 500) == "mine\n" * 500


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@settings(max_examples=200)
@given(words, words, st.sampled_from((b"", b"# Title\n\n- item\n", b"text\r\n")))
def test_whatever_the_words_are_the_block_is_a_label_and_a_list(
    failing: str, working: str, document: bytes
) -> None:
    """T10: read back with a Markdown parser; approval does not help an attacker."""
    rule = make_rule((failing,), ("git", working), verdict=Verdict.APPROVED)
    text = exported(rule, document=document)
    if text == document.decode():
        return
    ours = text[len(document) :]
    tokens = MarkdownIt("commonmark").parse(ours)
    blocks = [token.type for token in tokens if token.level == 0 and token.nesting >= 0]
    assert blocks == ["html_block", "paragraph_open", "bullet_list_open", "html_block"]
    [_, item] = [token for token in tokens if token.type == "inline"]
    assert {child.type for child in item.children or ()} == {"text", "code_inline"}
    spans = [child.content for child in item.children or () if child.type == "code_inline"]
    assert len(spans) == 2
    assert spans[1].strip() == f"git {working}".strip()


def test_nothing_of_the_environment_decides_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    before = exported(make_rule())
    monkeypatch.setenv("LANG", "tr_TR.UTF-8")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert exported(make_rule()) == before
    assert os.linesep not in LABEL


def test_of_several_remedies_the_best_one_is_written() -> None:
    weaker = make_rule(working=("gut", "status"), number=1, c=2)
    better = make_rule(number=2, c=5)

    assert exportable([weaker, better], outside) == [better]


def test_old_evidence_gives_way_to_new() -> None:
    old = make_rule(("old",), ("new",), number=1, c=9)
    fresh = msgspec.structs.replace(make_rule(number=2, c=3), last_us=400 * 24 * 3600 * 1_000_000)

    assert exportable([old, fresh], outside) == [fresh, old]
