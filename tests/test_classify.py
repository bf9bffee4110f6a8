"""Which runs failed as a command, in which part, and how; and what two failures have in common."""

# ruff: noqa: E501 - one error a line: a table is read by its columns

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightrec.classify import Failure, FailureKind, classify
from flightrec.ingest import CommandRun
from flightrec.redact import Redactor
from flightrec.shell_words import parse
from flightrec.signature import normalise, plain
from flightrec.wire import Source
from growth import assert_linear

K = FailureKind


def ran(command: str, status: int | None, tail: str = "", **more: Any) -> CommandRun:  # noqa: ANN401 - fields of CommandRun
    safe = Redactor().redact_text
    values = {
        "run": b"r" * 16,
        "session": b"s" * 16,
        "source": Source.RELAY,
        "shell": "bash",
        "tty": "",
        "pid": 1,
        "project": safe("/p"),
        "worktree": safe("/p"),
        "cwd": safe("/p"),
        "command": safe(command),
        "truncated": False,
        "secret": False,
        "boot": "b",
        "mono_us": 1,
        "started_us": 1,
        "exit": status,
        "tail": safe(tail),
    }
    return CommandRun(**{**values, **more})


def failure_of(command: str, status: int | None, tail: str = "", **more: Any) -> Failure | None:  # noqa: ANN401 - same
    run = ran(command, status, tail, **more)
    return classify(run, parse(run.command))


def failed(command: str, status: int, tail: str = "", **more: Any) -> Failure:  # noqa: ANN401 - same
    failure = failure_of(command, status, tail, **more)
    assert failure is not None
    return failure


WORDINGS = [
    ("gti log", 127, "bash: gti: command not found", K.COMMAND_NOT_FOUND, "gti"),
    ("gti log", 127, "zsh: command not found: gti", K.COMMAND_NOT_FOUND, "gti"),
    ("gti log", 127, "sh: 1: gti: not found", K.COMMAND_NOT_FOUND, "gti"),
    ("gti log", 127, "/bin/sh: line 1: gti: command not found", K.COMMAND_NOT_FOUND, "gti"),
    ("gti log", 127, "fish: Unknown command: gti", K.COMMAND_NOT_FOUND, "gti"),
    ("sudo gti log", 1, "sudo: gti: command not found", K.COMMAND_NOT_FOUND, "gti"),
    ("sudo apt update", 127, "bash: sudo: command not found", K.COMMAND_NOT_FOUND, "sudo"),
    ("npm test", 127, "> p@1.0.0 test\n> jset\n\nsh: 1: jset: not found", K.COMMAND_NOT_FOUND, "jset"),
    ("./x.py", 127, "/usr/bin/env: 'pyton3': No such file or directory", K.COMMAND_NOT_FOUND, "pyton3"),
    ("../tool.sh", 127, "bash: ../tool.sh: No such file or directory", K.MISSING_FILE, "../tool.sh"),
    ("./run.sh", 126, "bash: ./run.sh: Permission denied", K.NOT_EXECUTABLE, "./run.sh"),
    ("ls [", 1, "zsh: no matches found: a[1]", K.SHELL_SYNTAX, "a[1]"),
    ("git stauts", 1, "git: 'stauts' is not a git command. See 'git --help'.", K.UNKNOWN_SUBCOMMAND, "stauts"),
    ("cargo biuld", 101, "error: no such command: `biuld`", K.UNKNOWN_SUBCOMMAND, "biuld"),
    ("kubectl gte pods", 1, 'error: unknown command "gte" for "kubectl"', K.UNKNOWN_SUBCOMMAND, "gte"),
    ("npm run biuld", 1, 'npm error Missing script: "biuld"', K.UNKNOWN_SUBCOMMAND, "biuld"),
    ("uv piip list", 2, "error: unrecognized subcommand 'piip'", K.UNKNOWN_SUBCOMMAND, "piip"),
    ("apt instal jq", 100, "E: Invalid operation instal", K.UNKNOWN_SUBCOMMAND, "instal"),
    ("make tset", 2, "make: *** No rule to make target 'tset'.  Stop.", K.UNKNOWN_SUBCOMMAND, "tset"),
    ("ls -%", 2, "ls: invalid option -- '%'", K.UNKNOWN_OPTION, None),
    ("ls -E", 2, "ls: invalid option -- 'E'\nTry 'ls --help' for more information.", K.UNKNOWN_OPTION, "-E"),
    ("tar --creat x", 64, "tar: unrecognized option '--creat'", K.UNKNOWN_OPTION, "--creat"),
    ("t.py --verbos", 2, "usage: t.py [-h]\nt.py: error: unrecognized arguments: --verbos", K.UNKNOWN_OPTION, "--verbos"),
    ("gh pr --lmit 3", 1, "unknown flag: --lmit", K.UNKNOWN_OPTION, "--lmit"),
    ("rg --hiden x", 2, "error: unexpected argument '--hiden' found", K.UNKNOWN_OPTION, "--hiden"),
    ("black --lin 3 .", 2, "Error: No such option: --lin Did you mean --line-length?", K.UNKNOWN_OPTION, "--lin"),
    ("go build -out x", 2, "flag provided but not defined: -out", K.UNKNOWN_OPTION, "-out"),
    ("cp a", 1, "cp: missing destination file operand after 'a'", K.ARGUMENT_COUNT, "a"),
    ("docker run", 1, "docker: 'docker run' requires at least 1 argument", K.ARGUMENT_COUNT, None),
    ("sed s/a/b f", 1, "sed: -e expression #1, char 5: unterminated `s' command", K.EXPRESSION_SYNTAX, None),
    ("cat nope", 1, "cat: nope: No such file or directory", K.MISSING_FILE, "nope"),
    ("cargo run", 101, "error: could not find `Cargo.toml` in `/p` or any parent directory", K.MISSING_MANIFEST, None),
    ("cp d e", 1, "cp: -r not specified; omitting directory 'd'", K.IS_A_DIRECTORY, "d"),
    ("mkdir /opt/x", 1, "mkdir: cannot create directory '/opt/x': Permission denied", K.PERMISSION, "/opt/x"),
    ("brew list", 1, "Error: Running Homebrew as root is extremely dangerous", K.RUNNING_AS_ROOT, None),
    ("python3 a.py", 1, "ModuleNotFoundError: No module named 'yaml'", K.MISSING_MODULE, "yaml"),
    ("node a.js", 1, "Error: Cannot find module 'left-pad'\nRequire stack:", K.MISSING_MODULE, "left-pad"),
    ("ruby a.rb", 1, "cannot load such file -- nokogiri (LoadError)", K.MISSING_MODULE, "nokogiri"),
    ("gcc x.c", 1, "x.c:1:10: fatal error: zlib.h: No such file or directory", K.MISSING_LIBRARY, "zlib.h"),
    ("pip install nope", 1, "ERROR: No matching distribution found for nope", K.MISSING_PACKAGE, "nope"),
    ("pip install x", 1, "error: externally-managed-environment", K.MANAGED_ENVIRONMENT, None),
    ("./d.sh", 1, "./d.sh: line 3: AWS_REGION: unbound variable", K.MISSING_VARIABLE, "AWS_REGION"),
    ("python3 a.py", 1, "KeyError: 'APP_HOME'", K.MISSING_VARIABLE, "APP_HOME"),
    ("git log", 128, "fatal: not a git repository (or any of the parent directories): .git", K.NOT_A_REPOSITORY, None),
    ("git push", 128, "fatal: The current branch x has no upstream branch.", K.NO_UPSTREAM, None),
    ("git push", 1, " ! [rejected] main -> main (fetch first)\nerror: failed to push some refs", K.REJECTED, None),
    ("git commit -m x", 1, 'no changes added to commit (use "git add")', K.NOTHING_STAGED, None),
    ("git merge x", 1, "CONFLICT (content): Merge conflict in a.txt", K.CONFLICT, None),
    ("node s.js", 1, "Error: listen EADDRINUSE: address already in use :::3000", K.PORT_IN_USE, ":3000"),
    ("redis-cli ping", 1, "Could not connect to Redis at 127.0.0.1:6379: Connection refused", K.CONNECTION, None),
    ("docker ps", 1, "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", K.NOT_RUNNING, None),
    ("psql -c x", 2, 'FATAL:  database "shop" does not exist', K.MISSING_TARGET, "shop"),
    ("curl https://x.test", 60, "curl: (60) SSL certificate problem: self-signed certificate", K.TLS, None),
    ("curl http://nope.test", 6, "curl: (6) Could not resolve host: nope.test", K.DNS, "nope.test"),
    ("curl -s http://localhost:1", 7, "", K.CONNECTION, None),
    ("ssh h", 255, "h: Permission denied (publickey).", K.AUTHENTICATION, None),
    ("call", 1, "Error: You exceeded the rate limit, try again later", K.RATE_LIMIT, None),
    ("ollama run x", 1, "Error: model 'x' not found, try pulling it first", K.MISSING_MODEL, "x"),
    ("terraform plan", 1, 'Error: Backend initialization required, please run "terraform init"', K.NOT_INITIALISED, None),
    ("dd of=x", 1, "dd: error writing 'x': No space left on device", K.DISK_FULL, None),
    ("pytest", 1, "FAILED tests/test_a.py::test_a - assert 1 == 2\n1 failed in 0.1s", K.TEST_FAILURE, None),
    ("pytest nope", 4, "ERROR: file or directory not found: nope", K.MISSING_FILE, "nope"),
    ("gcc x.c", 1, "x.c:1:2: error: expected ';' before 'return'", K.COMPILE_ERROR, None),
    ("eslint .", 1, "✖ 2 problems (2 errors, 0 warnings)", K.LINT_FAILURE, None),
    ("python3 a.py", 1, "Traceback (most recent call last):\nZeroDivisionError: division by zero", K.EXCEPTION, None),
    ("sleep 99", 124, "", K.HARNESS_LIMIT, None),
    ("./x", 139, "Segmentation fault (core dumped)", K.CRASH, None),
    ("git config --frob", 129, "usage: git config [<options>]", K.USAGE, None),
]  # fmt: skip


@pytest.mark.parametrize(("command", "status", "tail", "kind", "name"), WORDINGS)
def test_an_error_is_told_by_exit_code_and_words(
    command: str, status: int, tail: str, kind: FailureKind, name: str | None
) -> None:
    failure = failed(command, status, tail)

    assert failure.kind is kind
    if name is not None:
        assert name in failure.named


LOCALISED = [
    ("python a.py", 127, "bash: Zeile 1: python: Kommando nicht gefunden.", K.COMMAND_NOT_FOUND),
    ("python a.py", 127, "bash: ligne 1: python : commande introuvable", K.COMMAND_NOT_FOUND),
    ("python a.py", 127, "bash: línea 1: python: orden no encontrada", K.COMMAND_NOT_FOUND),
    ("python a.py", 127, "bash: python: コマンドが見つかりません", K.COMMAND_NOT_FOUND),
    ("cat x", 1, "cat: x: Datei oder Verzeichnis nicht gefunden", K.MISSING_FILE),
    ("cat x", 1, "cat: x: Aucun fichier ou dossier de ce type", K.MISSING_FILE),
    ("cat x", 1, "cat: x: Нет такого файла или каталога", K.MISSING_FILE),
    ("mkdir /r", 1, "mkdir: kann Verzeichnis »/r“ nicht anlegen: Keine Berechtigung", K.PERMISSION),
    ("mkdir /r", 1, "mkdir: impossible de créer le répertoire « /r »: Permission non accordée", K.PERMISSION),
    ("ls -E", 2, "ls: Ungültige Option -- E", K.UNKNOWN_OPTION),
    ("ls --humna", 2, "ls: opción no reconocida «--humna»", K.UNKNOWN_OPTION),
    ("git stauts", 1, "git: 'stauts' ist kein Git-Befehl. Siehe 'git --help'.", K.UNKNOWN_SUBCOMMAND),
    ("git push", 128, "fatal: Der aktuelle Branch x hat keinen Upstream-Branch.\n    git push --set-upstream origin x", K.NO_UPSTREAM),
    ("git log", 128, "fatal: Kein Git-Repository (oder irgendeines der Elternverzeichnisse): .git", K.NOT_A_REPOSITORY),
]  # fmt: skip


@pytest.mark.parametrize(("command", "status", "tail", "kind"), LOCALISED)
def test_the_commonest_errors_are_understood_in_other_languages(
    command: str, status: int, tail: str, kind: FailureKind
) -> None:
    assert failed(command, status, tail).kind is kind


def test_one_mistake_has_one_signature_in_all_languages() -> None:
    english = failed("cat x", 1, "cat: x: No such file or directory")
    german = failed("cat x", 1, "cat: x: Datei oder Verzeichnis nicht gefunden")

    assert english.signature == german.signature


ANSWERS = [
    ("grep -q x f", 1),
    ("rg x", 1),
    ("diff a b", 1),
    ("cmp -s a b", 1),
    ("test -f x", 1),
    ("[ -d x ]", 1),
    ("[[ a == b ]]", 1),
    ("which nvim", 1),
    ("command -v nvim", 1),
    ("pgrep nginx", 1),
    ("git diff --exit-code", 1),
    ("systemctl is-active nginx", 3),
    ("false", 1),
    ("! true", 1),
    ("cd src && grep -n x f", 1),
]


@pytest.mark.parametrize(("command", "status"), ANSWERS)
def test_an_exit_code_that_is_an_answer_is_no_failure(command: str, status: int) -> None:
    assert failure_of(command, status) is None


def test_a_search_in_a_file_that_is_missing_is_a_failure_all_the_same() -> None:
    assert failed("grep x f", 2, "grep: f: No such file or directory").kind is K.MISSING_FILE


@pytest.mark.parametrize("status", [130, 131, 141, 143, 148])
def test_what_a_person_or_a_closed_pipe_ended_is_no_failure(status: int) -> None:
    assert failure_of("yes | head -1", status) is None


def test_an_exit_code_that_nobody_saw_is_neither_failure_nor_success() -> None:
    assert failure_of("gti log", None, "bash: gti: command not found") is None


@pytest.mark.parametrize(
    "command", ["cat app.log", "cat app.log | tail -2", "echo 'bash: gti: command not found'"]
)
def test_words_in_the_output_of_a_success_are_no_failure(command: str) -> None:
    text = "ERROR: No such file or directory\nTraceback (most recent call last):\nfatal: x\n"

    assert failure_of(command, 0, text) is None


@pytest.mark.parametrize(
    ("command", "tail", "kind"),
    [
        ("hexdmp f | head -1", "bash: hexdmp: command not found", K.COMMAND_NOT_FOUND),
        ("rm -q x || true", "rm: invalid option -- 'q'", K.UNKNOWN_OPTION),
        ("git push; git status", "fatal: No configured push destination.", K.MISSING_TARGET),
        ("pytest -q 2>&1 | tail -3", "1 failed, 2 passed in 0.1s", K.TEST_FAILURE),
    ],
)
def test_an_error_line_of_a_part_whose_exit_code_is_hidden_is_a_masked_failure(
    command: str, tail: str, kind: FailureKind
) -> None:
    failure = failed(command, 0, tail)

    assert failure.kind is kind
    assert failure.masked


def test_pipestatus_clears_the_parts_of_a_pipeline() -> None:
    tail = "cat: warning, not an error: No such file or directory"

    assert failure_of("cat f | head -1", 0, tail, pipestatus=(0, 0)) is None


def test_pipestatus_tells_the_part_that_failed() -> None:
    failure = failed("make 2>&1 | tee log", 2, "boom: it broke", pipestatus=(2, 0))

    assert (failure.segment, failure.program) == (0, "make")


@pytest.mark.parametrize(
    ("command", "tail", "part"),
    [
        ("cd x && pytst -q", "bash: pytst: command not found", 1),
        ("make && ./app", "./app: error: no config", 1),
        ("pytest -q && git push", "FAILED tests/test_a.py::test_a\n1 failed in 0.1s", 0),
        ("git pull && npm ci && npm test", "fatal: couldn't find remote ref x", 0),
        ("echo a && cat nope && echo b", "cat: nope: No such file or directory", 1),
    ],
)
def test_the_failing_part_of_a_chain_is_named(command: str, tail: str, part: int) -> None:
    assert failed(command, 1, tail).segment == part


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cannot open /home/a/x.txt", "cannot open /tmp/tmp.Xy12/y.txt"),
        ("pid 4711 died", "pid 12 died"),
        ("at 0x7f00ab12", "at 0xdeadbeef"),
        ("needs six 1.16.0", "needs six 1.17.0rc1"),
        ("no such thing: 'x'", "no such thing: \N{LEFT SINGLE QUOTATION MARK}x\N{RIGHT SINGLE QUOTATION MARK}"),
        ("commit 1f0c2d9e8b", "commit 9a8b7c6d5e"),
        ("\x1b[31mred\x1b[0m error", "red error"),
        ("10%\r50%\rerror", "error"),
    ],
)  # fmt: skip
def test_what_differs_from_run_to_run_is_blanked(one: str, other: str) -> None:
    assert normalise(plain(one)) == normalise(plain(other))


@given(st.text(max_size=400), st.text(max_size=2000), st.integers(0, 255))
def test_no_text_stops_the_classifier(command: str, tail: str, status: int) -> None:
    failure = failure_of(command, status, tail)

    if failure is not None:
        assert 0 <= failure.segment < len(failure.line.segments)
        assert failure == failure_of(command, status, tail)


HOSTILE = [
    lambda n: "error: " * n,
    lambda n: "unknown option " + "-" * n,
    lambda n: "a" * n,
    lambda n: "('" * n + "': No such file or directory",
    lambda n: "/" * n + ": not found",
    lambda n: "\n" * n,
    lambda n: "x: " * n + "command not found",
    lambda n: "\x1b]0;" * n,
    lambda n: "must specify a " * n,
    lambda n: "«" * n,
]


@pytest.mark.parametrize("make", HOSTILE)
def test_hostile_output_takes_linear_time(make: Any) -> None:  # noqa: ANN401 - a function of a size
    def judge(size: int) -> None:
        run = ran("tool --flag value", 1, make(size)[:8192])
        classify(run, parse(run.command))

    assert_linear(judge, 1024, 8192)
