"""Which success mended which failure, and, most often, that there is nothing to learn."""

# ruff: noqa: E501 - one session a line: a table is read by its columns

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flightrec.classify import classify
from flightrec.ingest import CommandRun
from flightrec.pairing import (
    WINDOW_US,
    Recovery,
    SessionHistory,
    find_recoveries,
    find_recovery,
)
from flightrec.redact import Redactor
from flightrec.shell_words import parse
from flightrec.wire import Source, TailSource
from growth import assert_linear

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SECOND = 1_000_000
HOME = "/home/ada/app"


class Typed(NamedTuple):
    """One command as it was typed, and what came of it."""

    command: str
    status: int = 0
    tail: str = ""
    cwd: str = HOME
    pipestatus: tuple[int, ...] = ()
    after_s: int = 5


class Found(NamedTuple):
    """A proven recovery, by the numbers of its runs."""

    failed: int
    fix: int
    kind: str
    needed: tuple[int, ...] = ()


def make_run(number: int, typed: Typed, at_s: int) -> CommandRun:
    redactor = Redactor()
    command = redactor.redact_command(typed.command)
    place = redactor.redact_text(typed.cwd)
    return CommandRun(  # noqa: S604 - shell is a field, not a process
        run=number.to_bytes(16, "big"),
        session=b"s" * 16,
        source=Source.RELAY,
        shell="bash",
        tty="",
        pid=1,
        project=place,
        worktree=place,
        cwd=place,
        command=command.text,
        truncated=False,
        secret=command.found,
        boot="b",
        mono_us=at_s * SECOND,
        started_us=at_s * SECOND,
        exit=typed.status,
        pipestatus=typed.pipestatus,
        tail=redactor.redact_text(typed.tail),
        tail_source=TailSource.MERGED if typed.tail else TailSource.NONE,
    )


def play(session: Sequence[tuple[Any, ...]]) -> list[tuple[Recovery, dict[bytes, int]]]:
    """Type a session; return its recoveries and the numbers of its runs."""
    history, found, numbers, now = SessionHistory(), [], {}, 0
    for number, row in enumerate(session):
        typed = Typed(*row)
        now += typed.after_s
        run = make_run(number, typed, now)
        numbers[run.run] = number
        line = parse(run.command)
        failure = classify(run, line)
        recoveries = () if failure is not None else find_recoveries(run, line, history)
        history.add(run, line, failure, recoveries)
        found += [(recovery, numbers) for recovery in recoveries]
    return found


def learned(session: Sequence[tuple[Any, ...]]) -> list[Found]:
    """Return the proven recoveries of a session."""
    return [
        Found(
            numbers[r.failure.run.run],
            numbers[r.fix.run],
            r.kind.value,
            tuple(numbers[n.run] for n in r.needed),
        )
        for r, numbers in play(session)
        if r.proven
    ]


NOT_FOUND = "bash: {}: command not found"
NO_MODULE = "ModuleNotFoundError: No module named '{}'"
NO_FILE = "{}: No such file or directory"
REJECTED = (
    "error: failed to push some refs\nhint: Updates were rejected because the remote contains work"
)

REPLACED = [
    # the program
    [("gti status", 127, NOT_FOUND.format("gti")), ("git status",)],
    [("python a.py", 127, NOT_FOUND.format("python")), ("python3 a.py",)],
    [("docker-compose up -d", 127, NOT_FOUND.format("docker-compose")), ("docker compose up -d",)],
    [("pytest -q tests", 127, NOT_FOUND.format("pytest")), ("python -m pytest -q tests",)],
    [("pytest tests", 127, NOT_FOUND.format("pytest")), ("uv run pytest tests",)],
    [("jest --ci", 127, NOT_FOUND.format("jest")), ("npx jest --ci",)],
    [("yarn build", 127, NOT_FOUND.format("yarn")), ("npm run build",)],
    [("netstat -tln", 127, NOT_FOUND.format("netstat")), ("ss -tln",)],
    [("systemctl start nginx", 127, NOT_FOUND.format("systemctl")), ("service nginx start",)],
    [("source env/bin/activate", 127, "sh: 1: source: not found"), (". env/bin/activate",)],
    [("deploy --dry", 127, NOT_FOUND.format("deploy")), ("~/bin/deploy --dry",)],
    [("sudo apt update", 127, NOT_FOUND.format("sudo")), ("apt update",)],
    [("hexdump -C f && echo done", 127, NOT_FOUND.format("hexdump")), ("od -c f && echo done",)],
    [("./run.sh", 126, "bash: ./run.sh: Permission denied"), ("bash run.sh",)],
    [("sh run.sh", 2, 'run.sh: 1: Syntax error: "(" unexpected'), ("bash run.sh",)],
    [("source e.sh && env", 127, "sh: 1: source: not found"), (". ./e.sh && env",)],
    [("lld prog", 127, NOT_FOUND.format("lld")), ("ldd prog",)],
    [("cd fronted && npm run build", 1, "bash: line 2: cd: fronted: No such file or directory"), ("cd frontend && npm run build",)],
    [("which node", 127, "sh: 1: which: not found"), ("command -v node",)],
    [("jq . d.json", 127, NOT_FOUND.format("jq")), ("python3 -m json.tool d.json",)],
    [("NAME = ada", 127, NOT_FOUND.format("NAME")), ("NAME=ada",)],
    [("ls | xargs catt", 127, "xargs: catt: No such file or directory"), ("ls | xargs cat",)],
    [("[-f a ] && echo", 127, NOT_FOUND.format("[-f")), ("[ -f a ] && echo",)],
    [("uv run tts.py", 2, "error: Failed to spawn: `tts.py`\n  Caused by: No such file or directory (os error 2)"), ("uv run ts.py",)],
    [("gcc a.cpp -o a", 1, "a.cpp:(.text+0x4): undefined reference to `std::cout'"), ("g++ a.cpp -o a",)],
    [("mdtool --version", 127, NOT_FOUND.format("mdtool")), (".venv/bin/mdtool check a.md",)],
    [("python3 app.cli", 2, "python3: can't open file '/home/ada/app/app.cli': [Errno 2] No such file or directory"), ("python3 -m app.cli",)],
    # the subcommand, the option, the call
    [("git psuh origin main", 1, "git: 'psuh' is not a git command. See 'git --help'."), ("git push origin main",)],
    [("npm build", 1, 'Unknown command: "build"\nDid you mean this?\n  npm run build # run the "build" package script'), ("npm run build",)],
    [("apt uninstall vim", 100, "E: Invalid operation uninstall"), ("apt remove vim",)],
    [("systemctl nginx start", 1, "Unknown operation 'nginx'."), ("systemctl start nginx",)],
    [("tar --creat -f a.tar d", 64, "tar: unrecognized option '--creat'"), ("tar --create -f a.tar d",)],
    [("rm -q f", 1, "rm: invalid option -- 'q'"), ("rm f",)],
    [("git log README.md -p", 128, "fatal: bad flag '-p' used after filename"), ("git log -p README.md",)],
    [("cp a", 1, "cp: missing destination file operand after 'a'"), ("cp a b",)],
    [("grep needle .", 2, "grep: .: Is a directory"), ("grep -r needle .",)],
    [("mkdir a/b/c", 1, "mkdir: cannot create directory 'a/b/c': No such file or directory"), ("mkdir -p a/b/c",)],
    [("t.py --level hihg f", 2, "t.py: error: argument --level: invalid choice: 'hihg' (choose from 'low', 'high')"), ("t.py --level high f",)],
    [("terraform fnt", 1, 'Terraform has no command named "fnt". Did you mean "env"?'), ("terraform fmt",)],
    [("git restore --stagd a", 129, "usage: git restore [<options>] <file>...\n\n    -s, --source <tree-ish>\n    --conflict <style>  conflict style (merge)\n    --ignore-unmerged   ignore unmerged entries\n    --overlay           use overlay mode\n    -q, --quiet         suppress progress\n"), ("git restore --staged a",)],
    [("find . -type file -name a", 1, "find: Must separate multiple arguments to -type using: ','"), ("find . -type f -name a",)],
    [("grep -PE 'a' f", 2, "grep: conflicting matchers specified"), ("grep -P 'a' f",)],
    [("pytest t.py::test_on", 4, "ERROR: not found: /home/ada/app/t.py::test_on\n(no match in any of [<Module t.py>])"), ("pytest t.py::test_one",)],
    [("cmake -B b", 1, "CMake Error at CMakeLists.txt:4 (message):\n  MODE is not set"), ("cmake -B b -DMODE=fast",)],
    [("make", 2, "make: *** No targets specified and no makefile found.  Stop."), ("make -f build.mk",)],
    [("go run .", 1, "go: no packages loaded from ."), ("go run ./cmd/api",)],
    [("pip install x==3.0", 1, "ERROR: No matching distribution found for x==3.0"), ("pip install x==2.1",)],
    [("cd w && pytest tests/ -q | tail; exit ${PIPESTATUS[0]}", 4, "ERROR: file or directory not found: tests/"), ("cd w && pytest api/tests/ -q",)],
    [("kubectl create deploy web", 1, 'run.go:72] "command failed" err="required flag(s) \\"image\\" not set"'), ("kubectl create deploy web --image=nginx",)],
    [("kubectl create secret db --from-file=a", 1, "Error: unknown flag: --from-file"), ("kubectl create secret generic db --from-file=a",)],
    [("openssl sha256sum f", 1, "Invalid command 'sha256sum'; type \"help\" for a list."), ("openssl sha256 f",)],
    [("ansible web -m pong", 2, 'web | FAILED! => {\n    "msg": "The module pong was not found in configured module paths"'), ("ansible web -m ping",)],
    [("timeout --kil-after=1 5 make", 125, "timeout: unrecognized option '--kil-after=1'"), ("timeout --kill-after=1 5 make",)],
    [("sed -i '' s/a/b/ f", 2, "sed: can't read s/a/b/: No such file or directory"), ("sed -i s/a/b/ f",)],
    [("cut -d :: -f1 f", 1, "cut: the delimiter must be a single character"), ("cut -d : -f1 f",)],
    [("gcc -o", 1, "gcc: error: missing filename after '-o'"), ("gcc -o a a.c",)],
    [("git merge --ff-only t", 128, "fatal: Not possible to fast-forward, aborting."), ("git merge --no-edit t",)],
    [("git push upstream main", 128, "fatal: 'upstream' does not appear to be a git repository"), ("git push origin main",)],
    [("java app.jar", 1, "Error: Could not find or load main class app.jar"), ("java -jar app.jar",)],
    [("javac hi.java", 2, "error: file not found: hi.java"), ("javac Hi.java",)],
    [("pip install six 2>&1 | tail -3; exit ${PIPESTATUS[0]}", 1, "by passing --break-system-packages.\nhint: See PEP 668"), ("python3 -m venv .venv && .venv/bin/pip install -q six",)],
    [("git add . && git comit -m x && git log", 1, "git: 'comit' is not a git command. See 'git --help'."), ("git add . && git commit -m x && git log",)],
    [("rg --type pyton x", 2, "unrecognized file type: pyton"), ("rg --type py x",)],
    [("tar -zcf d", 2, "tar: Cowardly refusing to create an empty archive"), ("tar -zcf d.tgz d",)],
    [("cd projects", 1, "bash: cd: projects: No such file or directory"), ("cd Projects",)],
    [("cargo run", 101, "error: a bin target must be available for `cargo run`"), ("cargo run --example show",)],
    [("go test --verbose", 1, "Usage of /tmp/x.test:\n  -test.v\n    \tprint more\n  -test.run regexp\n    \trun these\n  -test.list regexp\n    \tlist these\n  -test.short\n    \trun less\nexit status 2\nFAIL\texample.org/app\t0.002s"), ("go test -v",)],
    [("pytest --vv", 4, "pytest: error: unrecognized arguments: --vv"), ("pytest -vv",)],
    [("make all", 2, "make: *** No rule to make target 'all'.  Stop."), ("make -f build.mk all",)],
    [("psql -U smm -l", 2, 'FATAL:  Peer authentication failed for user "smm"'), ("psql -U ada -l",)],
    [("grep -P '*x' f", 2, "grep: quantifier does not follow a repeatable item"), ("grep -F '*x' f",)],
    [("grep -A a f", 2, "grep: a: invalid context length argument"), ("grep -A1 a f",)],
    [("cargo compile", 101, "error: no such subcommand: `compile`"), ("cargo build",)],
    # quoting and expressions
    [("[ 1 = 1] && echo", 2, "bash: [: missing `]'"), ("[ 1 = 1 ] && echo",)],
    [("awk -F, print $2 f", 1, "awk: cmd. line:1: ^ syntax error"), ("awk -F, '{print $2}' f",)],
    [("echo 'it's fine' > n.txt", 2, "bash: unexpected EOF while looking for matching `''"), ("echo \"it's fine\" > n.txt",)],
    [("pip install x[all]", 1, "zsh: no matches found: x[all]"), ("pip install 'x[all]'",)],
    [("git commit -am fix it", 128, "fatal: paths 'it ...' with -a does not make sense"), ("git commit -am 'fix it'",)],
    [("sed s/a/b f", 1, "sed: -e expression #1, char 5: unterminated `s' command"), ("sed s/a/b/ f",)],
    [("awk '{print $1' f", 2, "awk: line 2: missing } near end of file"), ("awk '{print $1}' f",)],
    # another tool, user or verb for what is there
    [("rmdir out", 1, "rmdir: failed to remove 'out': Directory not empty"), ("rm -r out",)],
    [("unzip a.tar.gz", 9, "End-of-central-directory signature not found.  Either this file is not a zipfile"), ("tar xzf a.tar.gz",)],
    [("git remote add origin g@h:x", 3, "error: remote origin already exists."), ("git remote set-url origin g@h:x",)],
    [("ssh web", 255, "ada@web: Permission denied (publickey)."), ("ssh root@web",)],
    [("cmake .", 1, 'CMake Error: The source directory "/b" does not appear to contain CMakeLists.txt.'), ("cmake ..",)],
    # what the error proposes
    [("git push", 128, "fatal: The current branch x has no upstream branch.\n    git push --set-upstream origin x"), ("git push -u origin x",)],
    [("pip install six", 1, "error: externally-managed-environment\nnote: pass --break-system-packages"), ("pip install --break-system-packages six",)],
    [("git merge side", 128, "fatal: refusing to merge unrelated histories"), ("git merge side --allow-unrelated-histories",)],
    [("npm ci", 1, "npm error The `npm ci` command can only install with an existing package-lock.json"), ("npm install",)],
    [("git submodule add ~/l v/l", 128, "fatal: transport 'file' not allowed"), ("git -c protocol.file.allow=always submodule add ~/l v/l",)],
    # the path
    [("pip install -r requirments.txt", 1, "ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'requirments.txt'"), ("pip install -r requirements.txt",)],
    [("rustc helo.rs", 1, "error: couldn't read helo.rs: No such file or directory (os error 2)\n\nerror: aborting due to previous error"), ("rustc hello.rs",)],
    [("git mv a.tx b", 128, "fatal: bad source, source=a.tx, destination=b"), ("git mv a.txt b",)],
    [("tar xzf x.tar.gz", 2, "tar (child): x.tar.gz: Cannot open: No such file or directory"), ("tar xzf x.tgz",)],
    [("go vet ./utils", 1, "stat /home/ada/app/utils: directory not found"), ("go vet ./util",)],
    [("ar rcs f.a f.obj", 1, "ar: f.obj: No such file or directory"), ("ar rcs f.a f.o",)],
    [("pip install -r dev_req.txt", 1, "ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'dev_req.txt'"), ("pip install -r dev-req.txt",)],
    [("source .venv/activate", 1, NO_FILE.format("bash: .venv/activate")), ("source .venv/bin/activate",)],
    [("python3 gen.py", 2, "python3: can't open file '/home/ada/app/gen.py': [Errno 2] No such file or directory"), ("python3 tools/gen.py",)],
]  # fmt: skip


@pytest.mark.parametrize("session", REPLACED, ids=lambda s: s[0][0])
def test_a_corrected_command_replaces_the_failed_one(
    session: Sequence[tuple[Any, ...]],
) -> None:
    assert learned(session) == [Found(0, 1, "replace")]


AROUND = [
    ("prerequisite", (1,), [("node i.js", 1, "Error: Cannot find module 'left-pad'"), ("npm install",), ("node i.js",)]),
    ("prerequisite", (2,), [("python a.py", 1, NO_MODULE.format("yaml")), ("ls",), ("pip install pyyaml",), ("python a.py",)]),
    ("prerequisite", (1,), [("git commit -m x", 1, "no changes added to commit"), ("git add a",), ("git commit -m x",)]),
    ("prerequisite", (1, 2), [("git commit -m x", 128, '*** Please tell me who you are.\n  git config --global user.email "you@example.com"\n  git config --global user.name "Your Name"'), ("git config user.email a@example.org",), ("git config user.name Ada",), ("git commit -m x",)]),
    ("prerequisite", (1,), [("git push", 1, REJECTED), ("git pull --rebase",), ("git push",)]),
    ("prerequisite", (1,), [("redis-cli ping", 1, "Could not connect to Redis at 127.0.0.1:6379: Connection refused"), ("docker compose up -d redis",), ("redis-cli ping",)]),
    ("prerequisite", (1,), [("touch out/x", 1, "touch: cannot touch 'out/x': No such file or directory"), ("mkdir out",), ("touch out/x",)]),
    ("prerequisite", (1,), [("./run.sh", 126, "bash: ./run.sh: Permission denied"), ("chmod +x run.sh",), ("./run.sh",)]),
    ("prerequisite", (), [("cd out", 1, "bash: cd: out: No such file or directory"), ("mkdir out && cd out",)]),
    ("directory", (1,), [("npm start", 254, "npm error enoent Could not read package.json"), ("cd web",), ("npm start", 0, "", HOME + "/web")]),
    ("directory", (), [("npm start", 254, "npm error enoent Could not read package.json"), ("cd web && npm start",)]),
    ("directory", (), [("make all", 2, "make: *** No rule to make target 'all'.  Stop."), ("make -C src all",)]),
    ("directory", (), [("npm run build", 1, 'npm error Missing script: "build"'), ("npm run build -w packages/a",)]),
    ("directory", (), [("mvn -q validate", 1, "there is no POM in this directory (/home/ada/app)."), ("mvn -q -f svc validate",)]),
    ("directory", (), [("hg log", 255, "abort: no repository found in '/home/ada/app' (.hg not found)"), ("hg -R lib log",)]),
    ("prerequisite", (1,), [("node a.js", 1, "Error: Cannot find module 'ms2'"), ("npm install ./lib",), ("node a.js",)]),
    ("prerequisite", (1,), [("unzip -t d.zip", 9, "unzip:  cannot find or open d.zip, d.zip.zip or d.zip.ZIP."), ("zip -qr d.zip d",), ("unzip -t d.zip",)]),
    ("prerequisite", (1,), [("docker context use prod", 1, 'context "prod": context not found: open /home/ada/.docker/contexts/meta.json: no such file or directory'), ("docker context create prod",), ("docker context use prod",)]),
    ("directory", (), [("pytest -q pkg/tests", 2, NO_MODULE.format("lib")), ("cd pkg && pytest -q tests",)]),
    ("environment", (), [("GOOS=linx go build", 2, "go: unsupported GOOS/GOARCH pair linx/amd64"), ("GOOS=linux go build",)]),
    ("environment", (1,), [("./up.sh", 2, "./up.sh: 2: TOKEN_URL: must be set"), ("source local.env",), ("./up.sh",)]),
    ("environment", (1,), [("./d.sh", 1, "./d.sh: line 3: STAGE: unbound variable"), ("export STAGE=dev",), ("./d.sh",)]),
    ("environment", (), [("./d.sh", 1, "./d.sh: line 3: STAGE: unbound variable"), ("STAGE=dev ./d.sh",)]),
    ("environment", (1,), [("mdtool", 127, NOT_FOUND.format("mdtool")), ("source .venv/bin/activate",), ("mdtool",)]),
    ("environment", (1, 2), [("pip install six", 1, "error: externally-managed-environment"), ("python3 -m venv .venv",), ("source .venv/bin/activate",), ("pip install six",)]),
    ("environment", (), [("node s.js", 1, "Error: listen EADDRINUSE: address already in use :::3000"), ("PORT=3001 node s.js",)]),
    ("privilege", (), [("mkdir /opt/x", 1, "mkdir: cannot create directory '/opt/x': Permission denied"), ("sudo mkdir /opt/x",)]),
    ("privilege", (), [("echo 1 > /etc/x", 1, "bash: /etc/x: Permission denied"), ("echo 1 | sudo tee /etc/x",)]),
    ("privilege", (), [("useradd ada", 127, NOT_FOUND.format("useradd")), ("sudo useradd ada",)]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "needed", "session"), AROUND, ids=lambda v: str(v)[:40])
def test_a_command_that_passes_after_its_cause_was_mended(
    kind: str, needed: tuple[int, ...], session: Sequence[tuple[Any, ...]]
) -> None:
    assert learned(session) == [Found(0, len(session) - 1, kind, needed)]


RED = "FAILED tests/test_a.py::test_a - assert 1 == 2\n1 failed in 0.1s"
REFUSED = "curl: (7) Failed to connect to localhost port 80: Connection refused"

NOTHING: dict[str, list[tuple[Any, ...]]] = {
    "red, edit, green": [("pytest -q", 1, RED), ("pytest -q",)],
    "a narrower run of the tests mends nothing": [("pytest -q", 1, RED), ("pytest -q tests/test_b.py",)],
    "an installation does not mend a red test": [("npm test", 1, "Tests: 1 failed, 3 passed"), ("npm install",), ("npm test",)],
    "a compile error is mended in an editor": [("gcc m.c", 1, "m.c:1:5: error: expected ';'"), ("gcc -Wall m.c",)],
    "a linter's finding is work": [("ruff check .", 1, "Found 1 error."), ("ruff check . --fix",)],
    "polling until it answers": [("curl -s localhost", 7), ("curl -s localhost", 7), ("curl -s localhost",)],
    "polling with another flag": [("curl -s localhost", 7), ("curl -sS localhost",)],
    "a flaky network": [("npm ci", 1, "npm ERR! code ECONNRESET"), ("npm ci",)],
    "a server's bad moment": [("curl -f x.test", 22, "curl: (22) The requested URL returned error: 503"), ("curl -fL x.test",)],
    "another address is another question": [("curl localhost:1", 7, REFUSED), ("curl localhost:2",)],
    "another argument": [("python div.py 1 0", 1, "ZeroDivisionError: division by zero"), ("python div.py 1 2",)],
    "another name": [("mkdir src", 1, "mkdir: cannot create directory 'src': File exists"), ("mkdir lib",)],
    "the next tag": [("git tag v1", 128, "fatal: tag 'v1' already exists"), ("git tag v2",)],
    "another file is looked at": [("cat a.py", 1, "cat: a.py: No such file or directory"), ("cat b.py",)],
    "which project is this": [("cat Cargo.toml", 1, "cat: Cargo.toml: No such file or directory"), ("cat package.json",)],
    "is it installed": [("pnpm --version", 127, NOT_FOUND.format("pnpm")), ("npm --version",)],
    "asking for help is no fix": [("tool frob", 2, "usage: tool\ntool: error: argument command: invalid choice: 'frob'"), ("tool --help",)],
    "another task of the same tool": [("git push", 128, "fatal: The current branch x has no upstream branch."), ("git status",)],
    "another script": [("npm run deplyo", 1, 'npm error Missing script: "deplyo"'), ("npm run build",)],
    "another target": [("make deploy", 2, "make: *** No rule to make target 'deploy'.  Stop."), ("make build",)],
    "giving up is no fix": [("git rebase main", 1, "CONFLICT (content): Merge conflict in a"), ("git rebase --abort",)],
    "a slip that was never mended": [("pyhton3 serve.py --port 1", 127, NOT_FOUND.format("pyhton3")), ("python3 -V",)],
    "not the same purpose": [("subl a.py", 127, NOT_FOUND.format("subl")), ("python3 a.py",)],
    "inline code is work": [("python3 -c 'import yaml2'", 1, NO_MODULE.format("yaml2")), ("python3 -c 'import json'",)],
    "a here-document is work": [("python3 - <<'E'\nx\nE", 1, "NameError: name 'x' is not defined"), ("python3 - <<'E'\n1\nE",)],
    "only the secret differs": [("curl -f -H 'Authorization: Bearer ghp_BAD0000000000000000000000000000000000' x.test", 22, "401 Unauthorized"), ("curl -f -H 'Authorization: Bearer ghp_GOOD000000000000000000000000000000000' x.test",)],
    "a file made in an editor": [("cat plan.md", 1, "cat: plan.md: No such file or directory"), ("cat plan.md",)],
    "another project": [("make", 2, "make: *** [Makefile:2: all] Error 1", "/a"), ("make", 0, "", "/b")],
    "another host": [("ssh ada@web", 255, "ada@web: Permission denied (publickey)."), ("ssh ada@db",)],
    "another folder is not the one above": [("docker build api", 1, 'unable to prepare context: path "api" not found'), ("docker build web",)],
    "another remote": [("git remote add origin g@h:x", 3, "error: remote origin already exists."), ("git remote add fork g@h:y",)],
    "a narrower run of the tests, as the tool proposes": [("cargo test", 101, "error: test failed, to rerun pass `--lib`"), ("cargo test --lib",)],
    "no match is an answer": [("grep -n x f", 1), ("grep -n y f",)],
    "an error that is only hidden": [("rm -q x", 1, "rm: invalid option -- 'q'"), ("rm -q x || true", 0, "rm: invalid option -- 'q'")],
    "still missing behind a pipe": [("frob f", 127, NOT_FOUND.format("frob")), ("frob f | head", 0, NOT_FOUND.format("frob"))],
    "a part whose exit code nobody saw": [("pytst", 127, NOT_FOUND.format("pytst")), ("pytest; echo $?",)],
    "a variable for debugging": [("node a.js", 1, "TypeError: x is undefined\n    at f (/a.js:1:1)"), ("DEBUG=1 node a.js",)],
    "a package that has nothing to do with it": [("python a.py", 1, NO_MODULE.format("helper_mod")), ("pip install tinytable",), ("python a.py",)],
    "another package was installed, and something else happened": [("python a.py", 1, NO_MODULE.format("numpy")), ("pip install requests",), ("git pull",), ("python a.py",)],
    "the harness ended it": [("pip install torch", 124), ("pip install numpy",)],
    "what was set up before the failure, too": [("source e.sh && gti log", 127, NOT_FOUND.format("gti")), ("source e.sh && gti log",)],
    "a script that was edited": [("./s.sh", 127, "./s.sh: line 2: ech: command not found"), ("./s.sh",)],
    "another of a program's choices": [("python t.py a", 1, "unknown type: a"), ("python t.py b",)],
    "another file of one letter": [("git add b.txt", 128, "fatal: pathspec 'b.txt' did not match any files"), ("git add a.txt",)],
    "another version": [("git show v1.1", 128, "fatal: ambiguous argument 'v1.1': unknown revision"), ("git show v1.0",)],
    "another place to do it in": [("terraform -chdir=a init", 1, "Error: Failed to query available provider packages"), ("terraform -chdir=b init",)],
    "the configuration was edited": [("terraform -chdir=a validate", 1, "Error: Missing required argument\n\n  on main.tf line 1, in output:"), ("terraform -chdir=b validate",)],
    "silence says nothing": [("./solve < a.txt", 1), ("./solve < b.txt",)],
}  # fmt: skip


@pytest.mark.parametrize("reason", NOTHING)
def test_there_is_nothing_to_learn_from(reason: str) -> None:
    assert learned(NOTHING[reason]) == []


def test_a_failure_is_consumed_once() -> None:
    failed = ("python a.py", 127, NOT_FOUND.format("python"))

    assert learned([failed, ("python3 a.py",), ("python3 a.py",)]) == [Found(0, 1, "replace")]


def test_two_slips_are_both_answered_by_the_command_that_works() -> None:
    session = [
        ("gti comit --amend", 127, NOT_FOUND.format("gti")),
        ("git comit --amend", 1, "git: 'comit' is not a git command. See 'git --help'."),
        ("git commit --amend",),
    ]

    assert learned(session) == [Found(1, 2, "replace"), Found(0, 2, "replace")]


def test_attempts_that_failed_in_between_are_kept() -> None:
    session = [
        ("mkdir /opt/x", 1, "mkdir: cannot create directory '/opt/x': Permission denied"),
        ("mkdir -p /opt/x", 1, "mkdir: cannot create directory '/opt/x': Permission denied"),
        ("sudo mkdir -p /opt/x",),
    ]
    (recovery, numbers) = play(session)[-1]

    assert [numbers[run.run] for run in recovery.also_tried] == [1]


def test_a_failure_that_passed_unchanged_is_closed_and_no_later_run_mends_it() -> None:
    session = [
        ("node i.js", 1, "Error: Cannot find module 'left-pad'"),
        ("node i.js",),
        ("npm install",),
        ("node i.js",),
    ]

    assert learned(session) == []


def test_an_old_failure_is_left_alone() -> None:
    late = WINDOW_US // SECOND + 1
    session = [("gti log", 127, NOT_FOUND.format("gti")), ("git log", 0, "", HOME, (), late)]

    assert learned(session) == []


def test_a_cut_command_makes_no_rule() -> None:
    history = SessionHistory()
    failed = make_run(1, Typed("gti log", 127, NOT_FOUND.format("gti")), 1)
    fix = make_run(2, Typed("git log"), 2)
    line = parse(failed.command)
    history.add(failed, line, classify(failed, line))

    assert find_recovery(fix, parse(fix.command), history) is not None
    assert find_recovery(replace(fix, truncated=True), parse(fix.command), history) is None


def test_a_masked_failure_is_only_a_candidate_where_no_exit_code_was_seen() -> None:
    tail = NOT_FOUND.format("hexdmp")
    unseen = [("hexdmp f | head -1", 0, tail), ("hexdump f | head -1",)]
    seen = [("hexdmp f | head -1", 0, tail, HOME, (127, 0)), ("hexdump f | head -1",)]

    assert learned(unseen) == []
    assert learned(seen) == [Found(0, 1, "replace")]


def test_the_part_that_answers_the_failed_one_is_named() -> None:
    session = [
        ("nginx -t && systemctl start nginx", 127, "sh: 1: systemctl: not found"),
        ("nginx -t && service nginx start",),
    ]
    (recovery, _numbers) = play(session)[0]

    assert (recovery.failure.segment, recovery.fix_segment) == (1, 1)


def test_long_histories_are_bounded() -> None:
    history = SessionHistory()
    for number in range(1000):
        run = make_run(number, Typed(f"gti log -{number}", 127, NOT_FOUND.format("gti")), number)
        line = parse(run.command)
        history.add(run, line, classify(run, line))

    assert len(history.entries) <= 64
    assert len(history.open_failures) <= 12


commands = st.sampled_from(
    [row[0] for session in (*REPLACED, *NOTHING.values()) for row in session]
)
outcomes = st.sampled_from(
    [
        (row[1], row[2])
        for session in (*REPLACED, *NOTHING.values())
        for row in session
        if len(row) > 2 and row[1]
    ]
)


@settings(max_examples=150, deadline=None)
@given(commands, outcomes, st.lists(st.sampled_from([("ls",), ("git status",), ("cat a",)])))
def test_an_unchanged_rerun_never_gives_a_rule(
    command: str, outcome: tuple[int, str], between: list[tuple[Any, ...]]
) -> None:
    status, tail = outcome

    assert not [
        found
        for found in learned([(command, status, tail), *between, (command,)])
        if found.fix == len(between) + 1 and found.failed == 0
    ]


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(6)), st.integers(0, len(REPLACED) - 6))
def test_the_order_of_independent_sessions_does_not_matter(order: list[int], first: int) -> None:
    sessions = REPLACED[first : first + 6]
    alone = {index: learned(session) for index, session in enumerate(sessions)}

    assert {index: learned(sessions[index]) for index in order} == alone


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200), st.text(max_size=500), st.text(max_size=200), st.integers(1, 255))
def test_no_text_stops_the_pairing(command: str, tail: str, fix: str, status: int) -> None:
    for found in learned([(command, status, tail), (fix,)]):
        assert (found.failed, found.fix) == (0, 1)


@pytest.mark.parametrize("make", [lambda n: "a " * n, lambda n: "-x" * n, lambda n: "'" * n])
def test_hostile_commands_take_linear_time(make: Callable[[int], str]) -> None:
    def learn(size: int) -> None:
        text = make(size)
        failed = Typed(f"gti {text}"[:16000], 127, NOT_FOUND.format("gti"))
        play([tuple(failed), (f"git {text}"[:16000],)])

    assert_linear(learn, 1000, 8000)
