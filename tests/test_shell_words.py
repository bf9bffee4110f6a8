"""Lines are read as bash and zsh read them; real shells are asked where they can be."""

import contextlib
import shutil
import signal
import string
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from flightrec.shell_words import (
    TEXT_MAX,
    CommandLine,
    SimpleCommand,
    parse,
    quote,
    replace_segment,
)
from flightrec.wrappers import count_wrapper_words
from growth import assert_linear

BASH = shutil.which("bash") or ""
ZSH = shutil.which("zsh")
SHELL_ENV = {"LC_ALL": "C.UTF-8", "PATH": "/nonexistent"}


def words_of(line: CommandLine) -> list[list[str]]:
    return [[word.text for word in segment.words] for segment in line.segments]


def only(text: str) -> SimpleCommand:
    (segment,) = parse(text).segments
    return segment


def operators_of(line: CommandLine) -> list[str]:
    return [operator.text for operator in line.operators]


# --- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("plain", "plain"),
        ("'a b'", "a b"),
        ('"a b"', "a b"),
        (r"a\ b", "a b"),
        (r"\$x", "$x"),
        (r'"\$x \" \\ \a"', r'$x " \ \a'),
        ("'it'\\''s'", "it's"),
        ("a\"b\"'c'd", "abcd"),
        ('"a\\\nb"', "ab"),
        ("a\\\nb", "ab"),
        (r"$'a\n\t\'\x41\101é\e\cA'", "a\n\t'AAé\x1b\x01"),
        (r"$'\xc3\xa9'", "é"),
        (r"$'a\0b'", "a"),
        ('$"hello"', "hello"),
        ("''", ""),
        ('"a $ b"', "a $ b"),
        ("a$", "a$"),
        ("a#b", "a#b"),
        ("stash@{0}", "stash@{0}"),
        ("{}", "{}"),
        ("a=b", "a=b"),
        ("HEAD~2", "HEAD~2"),
        ("HEAD^", "HEAD^"),
        ("1.0-rc+b", "1.0-rc+b"),
    ],
)
def test_a_literal_word_has_the_value_that_the_program_receives(written: str, value: str) -> None:
    word = only(f"run {written}").words[1]

    assert (value, True) == (word.text, word.literal)
    assert f"{value}\0" == shell_output(BASH, f"printf '%s\\0' {written}")


@pytest.mark.parametrize(
    "written",
    [
        "$x",
        "${x:-a b}",
        '"a $x"',
        '"${x}"',
        "$(a; b)",
        '"$(a "b" \')\')"',
        "`a b`",
        '"`a "b"`"',
        "$((1 + (2)))",
        "$[1 + 2]",
        "*.py",
        "a?",
        "[ab]*",
        "~/x",
        "{a,b}",
        "{1..3}",
        "<(a b)",
        ">(a b)",
        "=(a b)",
        "*(.om[1,3])",
        "a(b|c)",
        '${(f)"$(a)"}',
        "$$",
        "x$?y",
    ],
)
def test_a_word_with_something_to_expand_stays_one_word_and_is_not_literal(written: str) -> None:
    segment = only(f"run {written} last")

    assert [segment.words[0].text, segment.words[-1].text] == ["run", "last"]
    assert len(segment.words) == 3
    assert not segment.words[1].literal
    assert written == parse(f"run {written} last").text[4:-5]


def test_the_value_of_a_quoted_expansion_keeps_it_as_written() -> None:
    word = only("""run "a "$x' b'"$(c "d")" """).words[1]

    assert word.text == 'a $x b$(c "d")'
    assert word.quoted
    assert not word.literal


def test_a_words_span_is_where_it_is_written() -> None:
    text = "  git  commit -m 'a b' \\\n  --all"

    written = [text[w.start : w.end] for w in only(text).words]

    assert written == ["git", "commit", "-m", "'a b'", "--all"]


# --- segments, operators, depth ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words", "operators"),
    [
        ("", [], []),
        ("  # nothing", [], []),
        ("ls", [["ls"]], []),
        ("a && b || c; d", [["a"], ["b"], ["c"], ["d"]], ["&&", "||", ";"]),
        ("a | b |& c", [["a"], ["b"], ["c"]], ["|", "|&"]),
        ("a & b", [["a"], ["b"]], ["&"]),
        ("a\n\nb", [["a"], ["b"]], ["\n"]),
        ("a &&\n  b", [["a"], ["b"]], ["&&"]),
        ("a;\nb", [["a"], ["b"]], [";"]),
        ("a # && b\nc", [["a"], ["c"]], ["\n"]),
        ("(a; b) | c", [["a"], ["b"], ["c"]], [";", "|"]),
        ("{ a; } && b", [["a"], ["b"]], ["&&"]),
        ("((a) | b)", [["a"], ["b"]], ["|"]),
        ("if a; then b; fi && c", [["a"], ["b"], ["c"]], [";", "&&"]),
        ("case x in a) b ;; c) d; esac", [["b"], ["d"]], [";"]),
        ("! a | b", [["!", "a"], ["b"]], ["|"]),
        ("time -p a", [["time", "-p", "a"]], []),
        ("[[ -f x && y ]] && b", [["[[", "-f", "x", "&&", "y", "]]"], ["b"]], ["&&"]),
        ("((x > 1)) || b", [["((", "x > 1", "))"], ["b"]], ["||"]),
        ("echo 'a && b' | c", [["echo", "a && b"], ["c"]], ["|"]),
        ("echo if then fi", [["echo", "if", "then", "fi"]], []),
        ("a=1 if", [["if"]], []),
        ("echo a;echo b&&echo c", [["echo", "a"], ["echo", "b"], ["echo", "c"]], [";", "&&"]),
        ("echo {a} }", [["echo", "{a}", "}"]], []),
    ],
)
def test_a_line_is_cut_into_its_simple_commands(
    text: str, words: list[list[str]], operators: list[str]
) -> None:
    line = parse(text)

    assert words == words_of(line)
    assert operators == operators_of(line)
    assert line.complete


@pytest.mark.parametrize(
    "text",
    [
        "echo 'rm x; rm y' \"rm z | rm w\"",
        "echo $(rm x; case a in b) rm y;; esac)",
        'echo "$(rm "x)" | rm y)"',
        "echo `rm x; rm y`",
        "cat <<EOF\nrm x; rm y\n$(rm z)\nEOF\n",
        "diff <(rm x; rm y) >(rm z)",
        "echo ${x:-$(rm y)}",
        "echo $(( $(rm x) + 1 ))",
        "a=(rm 'x' # rm )\n y) echo",
        "git commit -m \"$(cat <<'EOF'\nit's; rm x )\nEOF\n)\"",
        "echo x # ; rm x",
        "(( x = $(rm x) ))",
        "[[ $(rm x) ]]",
        "for x in $(rm x); do :; done",
    ],
)
def test_data_is_never_a_segment(text: str) -> None:
    line = parse(text)

    assert line.complete
    assert "rm" not in [segment.program for segment in line.segments]
    assert len(line.segments) == 1


@pytest.mark.parametrize(
    ("text", "depths"),
    [
        ("a", [0]),
        ("(a); b", [1, 0]),
        ("( { a; } )", [2]),
        ("if a; then b; elif c; then d; else e; fi; f", [1, 1, 1, 1, 1, 0]),
        ("for x in 1 2; do a; done | b", [1, 0]),
        ("for x; do a; done", [1]),
        ("for ((i=0; i<3; i++)); do a; done", [1]),
        ("for x in 1\ndo a\ndone", [1]),
        ("for x in a; { b; }", [1]),
        ("while a; do b; done", [1, 1]),
        ("until a; do b; done", [1, 1]),
        ("select x in a b; do c; done", [1]),
        ("case $x in (a|b) c ;& d) e ;;& *) f ;; esac", [1, 1, 1]),
        ("case x in esac", []),
        ("f() { a; }; f", [1, 0]),
        ("function f { a; }", [1]),
        ("function f() (a)", [1]),
        ("f ()\n{ a; }", [1]),
        ("time { a; }", [1]),
        ("! ( a )", [1]),
        ("coproc NAME { a; }", [1]),
        ("{ { a; } }", [2]),
        # zsh
        ("for x (a b c) echo $x", [0]),
        ("if [[ -n $x ]] { a } else { b }", [1, 1, 1]),
        ("f() { a }", [1]),
        ("{ a } always { b }", [1, 1]),
        ("repeat 3; do a; done", [0, 1]),
        ("function { a }", [1]),
    ],
)
def test_compounds_give_depth_to_what_stands_in_them(text: str, depths: list[int]) -> None:
    line = parse(text)

    assert depths == [segment.depth for segment in line.segments]
    assert line.complete
    assert line.compound is (text != "a")


@pytest.mark.parametrize(
    "text",
    [
        "echo 'a",
        'echo "a',
        "echo `a",
        "echo $(a",
        "echo $(a 'b)'",
        "echo ${a",
        "echo $((1 + 2)",
        "echo $'a\\'",
        "cat <<EOF\nline\n",
        "cat <<EOF",
        "(a",
        "{ a;",
        "if a; then b",
        "for x in a",
        "while a; do b",
        "case x in a) b",
        "[[ a ",
        "((a",
        "a &&",
        "a |",
        "f()",
        "a=(b",
        "a)",
        "fi",
        "if a; fi",
        "cat <",
        "diff <(a",
    ],
)
def test_what_is_left_open_or_closed_too_early_is_not_complete(text: str) -> None:
    assert not parse(text).complete


def test_a_command_sent_to_the_background_is_seen() -> None:
    assert parse("sleep 5 &").background
    assert parse("sleep 5 &!").background
    assert not parse("sleep 5 & wait").background
    assert not parse("sleep 5").background


def test_a_comment_is_seen_but_not_in_a_word_or_quotes() -> None:
    assert parse("make # all").has_comment
    assert not parse("make a#b '# c' ${#x} $#").has_comment


# --- assignments, redirections, here-documents ---------------------------------------------------


@pytest.mark.parametrize(
    ("text", "assignments", "words"),
    [
        ("A=1 make", ["A=1"], ["make"]),
        ("A=1 B+='x y' make C=2", ["A=1", "B+=x y"], ["make", "C=2"]),
        ("a=(x y # c\n z) make", ["a=(x y # c\n z)"], ["make"]),
        ("a[1 + 2]=3", ["a[1 + 2]=3"], []),
        ("a[$(x 'y')]+=3 make", ["a[$(x 'y')]+=3"], ["make"]),
        ("declare -a a=(x y) b", [], ["declare", "-a", "a=(x y)", "b"]),
        ("'A'=1", [], ["A=1"]),
        ("1A=1", [], ["1A=1"]),
        (">log A=1 make", ["A=1"], ["make"]),
        ("x=$(a; b) y", ["x=$(a; b)"], ["y"]),
    ],
)
def test_assignments_before_the_program_are_no_words(
    text: str, assignments: list[str], words: list[str]
) -> None:
    segment = only(text)

    assert assignments == [word.text for word in segment.assignments]
    assert words == [word.text for word in segment.words]


@pytest.mark.parametrize(
    ("written", "operator", "fd", "target"),
    [
        (">out", ">", None, "out"),
        ("> 'a b'", ">", None, "a b"),
        (">>out", ">>", None, "out"),
        (">|out", ">|", None, "out"),
        ("<in", "<", None, "in"),
        ("<>both", "<>", None, "both"),
        ("2>err", ">", 2, "err"),
        ("2>&1", ">&", 2, "1"),
        ("10>&-", ">&", 10, "-"),
        ("<&3", "<&", None, "3"),
        ("&>all", "&>", None, "all"),
        ("&>>all", "&>>", None, "all"),
        (">&all", ">&", None, "all"),
        ("<<<word", "<<<", None, "word"),
        ("3<<<word", "<<<", 3, "word"),
        (">! out", ">!", None, "out"),
        (">>| out", ">>|", None, "out"),
    ],
)
def test_every_form_of_redirection_is_set_apart_from_the_words(
    written: str, operator: str, fd: int | None, target: str
) -> None:
    text = f"run a {written} b"

    segment = only(text)
    (redirection,) = segment.redirections

    assert [word.text for word in segment.words] == ["run", "a", "b"]
    assert (operator, fd, target) == (redirection.operator, redirection.fd, redirection.target.text)
    assert written == text[redirection.start : redirection.end]


def test_redirections_may_touch_each_other_and_name_a_variable() -> None:
    segment = only("run 2>&1>log {fd}<in 12>x a2>y")

    found = [(r.fd, r.variable, r.operator, r.target.text) for r in segment.redirections]

    assert found == [
        (2, "", ">&", "1"),
        (None, "", ">", "log"),
        (None, "fd", "<", "in"),
        (12, "", ">", "x"),
        (None, "", ">", "y"),
    ]
    assert [word.text for word in segment.words] == ["run", "a2"]


def test_bodies_of_here_documents_belong_to_their_redirections_in_order() -> None:
    text = "cat <<-A 3<<'B C' >out && next\n\tone\n\tA\n$two\\\nB C\nafter"

    line = parse(text)
    first, second, out = line.segments[0].redirections

    assert words_of(line) == [["cat"], ["next"], ["after"]]
    assert operators_of(line) == ["&&", "\n"]
    assert (first.operator, first.body) == ("<<-", "\tone\n")
    assert (second.operator, second.fd, second.body) == ("<<", 3, "$two\\\n")
    assert out.body is None
    assert [first.body, second.body] == [
        text[r.body_start : r.body_end] for r in line.segments[0].redirections[:2]
    ]
    assert line.has_heredoc
    assert line.complete


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("cat <<E | sort\nE x\n E\nE\nls", ["cat", "sort", "ls"]),
        ("cat <<E\na\\\nE\nE\nls", ["cat", "ls"]),
        ("cat <<'E'\na\\\nE\nls", ["cat", "ls"]),
        ("(cat <<E\n)\nE\n); ls", ["cat", "ls"]),
        ("while read x; do a; done <<E\n; rm\nE\nls", ["read", "a", "ls"]),
        ("x=$(cat <<E\n)\nE\n) ls", ["ls"]),
        ("echo $(cat <<E\nbody\nE) && ls", ["echo", "ls"]),
        ('cat <<""\n; rm\n\nls', ["cat", "ls"]),
        ("cat <<E; ls '\n'\n; rm\nE\nid", ["cat", "ls", "id"]),
        ("cat <<E", ["cat"]),
    ],
)
def test_a_here_document_ends_where_the_shell_ends_it(text: str, programs: list[str]) -> None:
    assert programs == [segment.program for segment in parse(text).segments]


# --- wrappers and what a line is about -----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "core"),
    [
        ("make all", "make all"),
        ("sudo make", "make"),
        ("sudo -u web -E make", "make"),
        ("sudo -Eu web make", "make"),
        ("sudo -uweb make", "make"),
        ("sudo --user=web -- make", "make"),
        ("sudo --user web A=1 make", "make"),
        ("/usr/bin/sudo -n make", "make"),
        ("doas -u web make", "make"),
        ("env A=1 B=2 make", "make"),
        ("env -i -u X PATH=/bin make", "make"),
        ("env -S 'a b'", "env -S 'a b'"),
        ("time make", "make"),
        ("time -p make", "make"),
        ("/usr/bin/time -f %E -v make", "make"),
        ("timeout 5 make", "make"),
        ("timeout -k 5 -s KILL 10s make", "make"),
        ("timeout --signal=KILL 10s make", "make"),
        ("nice make", "make"),
        ("nice -n 5 make", "make"),
        ("nice -5 make", "make"),
        ("nohup make &", "make"),
        ("command make", "make"),
        ("command -v make", "command -v make"),
        ("builtin cd x", "cd x"),
        ("exec -a name make", "make"),
        ("exec >log", "exec"),
        ("stdbuf -oL -e 0 make", "make"),
        ("noglob make", "make"),
        ("nocorrect make", "make"),
        ("ionice -c 2 -n 7 make", "make"),
        ("ionice -p 12", "ionice -p 12"),
        ("setsid -w make", "make"),
        ("chrt -r 10 make", "make"),
        ("taskset -c 0-3 make", "make"),
        ("xvfb-run -a -s '-screen 0 1x1x8' make", "make"),
        ("flock -w 5 /tmp/lock make", "make"),
        ("! make", "make"),
        ("! sudo timeout 5 nice -n 3 make -j 4", "make -j 4"),
        ("sudo -v", "sudo -v"),
        ("sudo -l", "sudo -l"),
        ("env", "env"),
        ("sudo", "sudo"),
        ("uv run pytest", "uv run pytest"),
        ("A=1 sudo >log make 2>&1 x", "make x"),
        ("'sudo' make", "make"),
    ],
)
def test_wrappers_with_their_options_are_set_aside(text: str, core: str) -> None:
    assert core == parse(text).core_text(0)


def test_program_and_arguments_come_after_the_wrappers() -> None:
    segment = only("sudo -u web make -j4 all")

    assert (segment.program, [w.text for w in segment.arguments]) == ("make", ["-j4", "all"])
    assert segment.wrappers == 3
    assert only("A=1").program == ""
    assert only("! make").negated
    assert not only("make").negated


def test_counting_wrapper_words_takes_any_words() -> None:
    assert count_wrapper_words([]) == 0
    assert count_wrapper_words(["sudo", "env", "make"]) == 2


@pytest.mark.parametrize(
    ("text", "core"),
    [
        ("cd /x && make", ["make"]),
        ("cd /x; make; ls", ["make", "ls"]),
        ("set -e\ncd /x\nmake | tail", ["make", "tail"]),
        ("A=1; export B=2 && make", ["make"]),
        ("cd /x", ["cd"]),
        ("cd /x && cd y", ["cd"]),
        ("cd /x | make", ["cd", "make"]),
        ("cd /x || make", ["cd", "make"]),
        ("(cd /x && make)", ["cd", "make"]),
        ("make && cd /x", ["make", "cd"]),
        ("", []),
    ],
)
def test_leading_preparations_are_not_what_a_line_is_about(text: str, core: list[str]) -> None:
    assert core == [segment.program for segment in parse(text).core_segments]


# --- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "index", "new", "expected"),
    [
        ("git stauts", 0, "git status", "git status"),
        ("cd /x && pytest -q 2>&1 | tail -5", 1, "py.test", "cd /x && py.test 2>&1 | tail -5"),
        ("A=1 sudo -u web mkae all >log", 0, "make all", "A=1 sudo -u web make all >log"),
        ("run a 2>err b; x", 0, "run c", "run c 2>err; x"),
        (">out run a", 0, "new", ">out new"),
        ("cat <<E | sort\nbody\nE\n", 0, "tac", "tac <<E | sort\nbody\nE\n"),
        ("A=1; x", 0, "env", "A=1 env; x"),
        ("( a 'b c' ) # end", 0, "d", "( d ) # end"),
    ],
)
def test_replacing_a_segment_keeps_all_around_it(
    text: str, index: int, new: str, expected: str
) -> None:
    assert expected == replace_segment(parse(text), index, new)


@given(st.text(max_size=40))
@example("")
@example("~/x")
@example("a=b")
@example("it's")
def test_a_quoted_text_is_one_literal_word(text: str) -> None:
    word = only(f"run {quote(text)}").words[1]

    assert (text, True) == (word.text, word.literal)


def test_only_what_needs_quotes_is_quoted() -> None:
    assert quote("src/a-b_c.py:10") == "src/a-b_c.py:10"
    assert quote("a b") == "'a b'"
    assert quote("") == "''"


# --- hostile input -------------------------------------------------------------------------------


PUNCTUATION = st.lists(st.sampled_from([*string.punctuation, *"a1 \n"]), max_size=60).map("".join)
SOUP = st.lists(
    st.sampled_from(
        [
            "a", "b", "cc", "x=1", "y=(a b)", "z+=q", " ", " ", " ", "\t", "'", '"', "\\", "`", "$",
            "$(", ")", "(", "{", "}", "${", "${x}", "$((", "))", "((", "[[ a ", " ]] ", "|", "||",
            "&&", "&", ";", ";;", "\n", "#", "# c", "<<E", "<<-E", "<<'E'", "\nE\n", "\tE\n", ">f",
            "2>&1", "<g", "<<<", " <(", ">(", "&>h", ">|k", "<>m", "{fd}>f", "if ", "then ", "fi",
            "else ", "elif ", "while ", "do ", "done", "for ", "in ", "case ", "esac", "function ",
            "f()", "f () ", "{ ", " }", "; }", "! ", "time ", "$'", '"$x"', "*", "?", "[", "]", "~",
            "{a,b}", "=", "+=", "a[1]=2", "$[", "`a`", "a)", '"a b"', "'c d'",
        ]
    ),
    min_size=1,
    max_size=14,
).map("".join).filter(lambda text: "\\\n" not in text)  # fmt: skip
"""Lines that mean nothing. Left out, because this reader knowingly differs from bash: a line
continuation inside an operator, a number or a name; ``[[ ]]``, which ``bash -n`` lets pass;
reserved words as the name of a coprocess."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail instead of hanging where reading does not come to an end."""

    def fail(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@settings(database=None, deadline=None, max_examples=800, derandomize=True)
@given(st.one_of(st.text(max_size=80), PUNCTUATION, SOUP))
@example("function <>mf () ((")
def test_any_text_is_read_into_parts_that_lie_in_it_in_order(text: str) -> None:
    with at_most(10):
        line = parse(text)

    last = 0
    for segment in line.segments:
        spans = [(p.start, p.end) for p in (*segment.assignments, *segment.words)]
        spans += [(r.start, r.end) for r in segment.redirections]
        assert all(segment.start <= start < end <= segment.end for start, end in spans)
        assert last <= segment.start <= segment.end <= len(text)
        last = segment.end
    assert len(line.operators) == max(0, len(line.segments) - 1)
    assert text == line.text
    for index in range(len(line.segments)):
        replace_segment(line, index, "x")
        line.core_text(index)


REPEATED = [
    "(", ")", "((", "()", "( ", "$(", "$( ", "$((", "${", "$[", "`", "'", '"', '"$(', '"${x:-',
    "<(", "a=(", "[[ ", "((a) ", "((a) b) ", "((a) b);", "{ ", "} ", "if ", "case x in ",
    "case x in a) ", "for x in ", "f() ", "a;", "a ", "a|", "&&", "<<E ", "<<E\n", "<<E\nE\n",
    "$(<<E\nE)", "<<''\n", "\\\n", "\\", "#", "# \n", "a[", "a[]=", "*(", "! ", "time ", "coproc ",
    "sudo ", "sudo -u ", "env A=1 ", "2>&1 ", "2>", "{a}>", "{", "{,", "~:", "$'", "$$",
    "\"a\"'b'", "\\'", "é", "\udc80", '"\\', "((", "(( $(", "a() { ", "<<-E\n\t", "\t", "1", "&|",
    "&! ", ";;", "[", "do ", "\0",
]  # fmt: skip


@pytest.mark.parametrize("piece", REPEATED)
def test_reading_takes_time_in_proportion_to_the_text(piece: str) -> None:
    text = piece * TEXT_MAX

    assert_linear(lambda size: parse(text[:size]), TEXT_MAX // 8, TEXT_MAX)


@pytest.mark.parametrize(
    "pair",
    [("(", ")"), ("$(", ")"), ('"$(', ')"'), ("{ ", "; }"), ("${x:-", "}"), ("$((", "))"),
     ("((", "))"), ("if a; then ", "; fi"), ("<(", ")"), ('"${x:-', '}"'), ("((a) ", ")")],
)  # fmt: skip
def test_depth_has_no_limit(pair: tuple[str, str]) -> None:
    times = TEXT_MAX // (len(pair[0]) + len(pair[1]) + 1)
    text = "echo " * pair[0].startswith(("$", '"', "<")) + pair[0] * times + "a" + pair[1] * times

    assert len(text) <= TEXT_MAX
    assert parse(text).text == text


def test_a_line_that_is_too_long_is_read_as_far_as_it_goes() -> None:
    text = "a; " * TEXT_MAX

    line = parse(text)

    assert not line.complete
    assert text == line.text
    assert TEXT_MAX // 3 <= len(line.segments) <= TEXT_MAX // 3 + 1


# --- the same as a real shell --------------------------------------------------------------------


def run_shell(shell: str, *arguments: str, **options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shell, *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        env={**SHELL_ENV, **options},
        stdin=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )


def shell_output(shell: str, script: str) -> str:
    return run_shell(shell, "-c", script).stdout


def complaint(shell: str, script: str) -> str:
    """What the shell says about a line that it only reads."""
    return run_shell(shell, "-n", "-c", script).stderr


@dataclass
class Written:
    """A line that is being written, and the segments that it must be read as."""

    text: str = ""
    pending: list[tuple[str, str]] = field(default_factory=list)
    segments: list[tuple[list[str], int]] = field(default_factory=list)
    sources: list[list[str]] = field(default_factory=list)
    depth: int = 0

    def put(self, text: str) -> None:
        self.text += text

    def newline(self) -> None:
        self.text += "\n" + "".join(body + marker + "\n" for marker, body in self.pending)
        self.pending.clear()


Writer = Callable[[Written], None]

BARE = st.text("abyz019_./:@%+,-é", min_size=1, max_size=6)
ANY = st.text("ab \t\n'\"\\$`*?[]{}()<>|&;#!~^=é€", max_size=6)
ESCAPE_IN_DOUBLE = str.maketrans({char: f"\\{char}" for char in '"\\$`'})
ESCAPE_IN_ANSI = str.maketrans({"'": "\\'", "\\": "\\\\", "\n": "\\n", "\t": "\\x09", "a": "\\141"})


def escaped(text: str) -> tuple[str, str]:
    text = text.replace("\n", "")
    return text, "".join(f"\\{char}" for char in text)


# value and one way to write it
PARTS = st.one_of(
    BARE.map(lambda text: (text, text)),
    ANY.map(lambda text: (text.replace("'", ""), "'" + text.replace("'", "") + "'")),
    ANY.map(lambda text: (text, '"' + text.translate(ESCAPE_IN_DOUBLE) + '"')),
    ANY.map(lambda text: (text, "$'" + text.translate(ESCAPE_IN_ANSI) + "'")),
    ANY.map(escaped),
    BARE.map(lambda text: (text, "\\\n" + text)),
)
WORDS = (
    st.lists(PARTS, min_size=1, max_size=3)
    .map(lambda parts: ("".join(p[0] for p in parts), "".join(p[1] for p in parts)))
    .filter(lambda word: word[1].strip("\\\n") != "" and not word[1].startswith("~"))
)
PROGRAMS = st.text("abcxyz", min_size=1, max_size=3).map(lambda text: f"p{text}")
BLANKS = st.sampled_from([" ", "  ", "\t", " \\\n "])
BODY = st.text("ab '\"()$`;\n", max_size=20).map(lambda text: f"{text}\n")


@st.composite
def redirections(draw: st.DrawFn) -> Writer:
    kind = draw(
        st.sampled_from([">f", "2>&1", "< f", ">> f", "&>f", "<<<'w w'", "3<>f", ">|f", "<<"])
    )
    marker, body = draw(st.sampled_from(["E", "EOF"])), draw(BODY)
    marked = draw(st.sampled_from([marker, f"'{marker}'", f'"{marker}"']))
    body = "".join(f"_{row}\n" for row in body.splitlines())

    def write(line: Written) -> None:
        line.put(f"<<{marked}" if kind == "<<" else kind)
        if kind == "<<":
            line.pending.append((marker, body))

    return write


@st.composite
def commands(draw: st.DrawFn) -> Writer:
    assignments = draw(st.lists(st.sampled_from(["A=1", "B+='x y'", "c=(1 'b )')"]), max_size=2))
    program = draw(PROGRAMS)
    arguments = draw(st.lists(st.one_of(WORDS, redirections()), max_size=4))
    blank = draw(BLANKS)

    def write(line: Written) -> None:
        values, written = [program], []
        line.put("".join(f"{assignment} " for assignment in assignments) + program)
        for argument in arguments:
            line.put(blank)
            if callable(argument):
                argument(line)
            else:
                values.append(argument[0])
                written.append(argument[1])
                line.put(argument[1])
        line.segments.append((values, line.depth))
        line.sources.append(written)

    return write


def join(first: Writer, operator: str, second: Writer) -> Writer:
    def write(line: Written) -> None:
        first(line)
        if operator == "\n":
            line.newline()
        else:
            line.put(f" {operator} ")
        second(line)

    return write


# what opens, what stands between the first and the second list, what closes; None is a newline
COMPOUNDS: list[tuple[str, str | None, str]] = [
    ("( ", "; ", " )"),
    ("{ ", None, "; }"),
    ("if ", "; then ", "; fi"),
    ("while ", "; do ", "; done"),
    ("until ", None, "; done"),
    ("f() { ", "; ", "; }"),
    ("for x in a 'b c' $d; do ", "; ", "; done"),
    ("for ((i = 0; i < (2); i++)); do ", "; ", "; done"),
    ("case $x in (a|'b)') ", " ;; c) ", " ;; esac"),
]


def enclose(compound: tuple[str, str | None, str], first: Writer, second: Writer) -> Writer:
    opens, between, closes = compound

    def write(line: Written) -> None:
        line.put(opens)
        line.depth += 1
        first(line)
        if between is None:
            line.newline()
            line.put("do " if opens == "until " else "")
        else:
            line.put(between)
        second(line)
        line.depth -= 1
        line.put(closes)

    return write


LISTS = st.recursive(
    commands(),
    lambda inner: st.one_of(
        st.builds(join, inner, st.sampled_from(["|", "|&", "&&", "||", ";", "&", "\n"]), inner),
        st.builds(enclose, st.sampled_from(COMPOUNDS), inner, inner),
    ),
    max_leaves=5,
)
COMMENTS = st.sampled_from(["", " # it's (a comment"])


def check_written_line(write: Writer, comment: str) -> None:
    """A line whose structure is known is read with that structure, and shells take it too."""
    written = Written()
    write(written)
    written.put(comment)
    written.newline()

    line = parse(written.text)

    assert complaint(BASH, written.text) == ""
    found = [([w.text for w in s.words], s.depth) for s in line.segments]
    assert written.segments == [(words, depth) for words, depth in found]
    assert line.complete
    for shell in filter(None, (BASH, ZSH)):
        arguments = " ".join(source for sources in written.sources for source in sources)
        values = [value for words, _ in written.segments for value in words[1:]]
        expected = "".join(f"{value}\0" for value in ["", *values])
        assert expected == shell_output(shell, f"printf '%s\\0' '' {arguments}")


@settings(
    database=None,
    deadline=None,
    max_examples=100,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(LISTS, COMMENTS)
def test_a_line_of_known_structure_is_read_with_it(write: Writer, comment: str) -> None:
    check_written_line(write, comment)


@pytest.mark.full
@settings(
    database=None,
    deadline=None,
    max_examples=1500,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(LISTS, COMMENTS)
def test_many_lines_of_known_structure_are_read_with_it(write: Writer, comment: str) -> None:
    check_written_line(write, comment)


def check_against_what_shells_accept(text: str) -> None:
    line = parse(text)
    said = complaint(BASH, text)

    if not said:
        assert line.complete, "bash takes it"
    elif "unexpected EOF" in said or "unexpected end of file" in said:
        taken_by_zsh = "}" in text and ZSH and not complaint(ZSH, text)
        assert taken_by_zsh or not line.complete, said


# Older releases read $( ) by other rules, which shows where the text makes no sense.
needs_bash_5_2 = pytest.mark.skipif(
    shell_output(BASH, "printf %d%02d ${BASH_VERSINFO[@]:0:2}") < "502",
    reason="bash before 5.2 reads senseless substitutions differently",
)


@needs_bash_5_2
@settings(database=None, deadline=None, max_examples=350, derandomize=True)
@given(SOUP)
@example("$$'\\''")
@example("2>&1>f")
@example("a |time then # c")
@example("! f()")
@example("$((${))")
def test_what_bash_accepts_is_complete_and_what_it_finds_open_is_not(text: str) -> None:
    check_against_what_shells_accept(text)


@needs_bash_5_2
@pytest.mark.full
@settings(database=None, deadline=None, max_examples=6000)
@given(SOUP)
def test_what_bash_says_of_many_random_lines_is_what_we_say(text: str) -> None:
    check_against_what_shells_accept(text)


# Words that are never the name of a builtin, so that to run them is only to report them.
HARMLESS = st.lists(
    st.sampled_from(
        [
            "a", "b", "cc", "x=1 ", "y=(a b) ", " ", " ", " ", "\t", "'", '"', "\\", "\\ ", "\\'",
            '\\"', "\\\\", "#", " # c", " <<E\nxx'\nE\n", "\n", ";", "&&", "|", ">f ", " 2>&1 ",
            "<<<", " &>h ", " 3<>m", "$'", "\\n", "\\x41", "\\u00e9", "\\cA", "\\xc3\\xa9", "*",
            "{a", "{", "}", ",", "..", "=", "-", '"a b"', "'c d'", '$"x y"', "é", "~",
            '"\\$x \\a"', "^", "%", "2", "@",
        ]
    ),
    min_size=1,
    max_size=16,
).map(lambda pieces: "a" + "".join(pieces))  # fmt: skip

REPORT = "command_not_found_handle() { printf '%s\\0' \"$@\" $'\\2' >>\"$OUT\"; }\n"


def check_against_what_bash_runs(text: str, folder: Path) -> None:
    """Run the line where no program exists and compare what bash looked for with the segments."""
    line = parse(text)
    words = [word for segment in line.segments for word in segment.words]
    if not line.complete or not all(word.literal for word in words):
        return
    if "||" in text or text.endswith("\\"):
        return  # what stands behind || does not run; a backslash with nothing behind is kept or not
    report = folder / "report"
    report.write_bytes(b"")
    script = f"cd {folder} || exit\n{REPORT}{text}"
    if run_shell(BASH, "-c", script, OUT=str(report)).stderr:
        return  # a file to read that is not there, and the like

    ran = report.read_text("utf-8", "surrogateescape").split("\0\2\0")[:-1]

    expected = ["\0".join(words) for words in words_of(line) if words]
    assert sorted(expected) == sorted(ran)


@settings(database=None, deadline=None, max_examples=300, derandomize=True)
@given(HARMLESS)
def test_what_bash_would_run_is_what_the_segments_say(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    check_against_what_bash_runs(text, tmp_path_factory.getbasetemp())


@pytest.mark.full
@settings(database=None, deadline=None, max_examples=4000)
@given(HARMLESS)
def test_what_bash_would_run_of_many_lines_is_what_the_segments_say(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    check_against_what_bash_runs(text, tmp_path_factory.getbasetemp())
