"""Rules as a file: a hostile one changes nothing, a good one waits until the person approves it."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon_process import DaemonProcess, flightrec
from flightrec import person
from flightrec.bundle import BYTES_MAX, Fate, judge, make_bundle, read_bundle
from flightrec.errors import FlightrecError
from flightrec.person import Act
from flightrec.redact import Redactor, Safe
from flightrec.rulebook import Rulebook
from flightrec.rules import Origin, Scope, Status
from flightrec.store import Store
from test_forgetting import Shell, rules

ACT = Act(at_us=1_000_000)


def rule(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {
        "uid": "ab" * 16,
        "failure": "command not found",
        "failing": ["gti", {"slot": 1}],
        "recovery": "replace",
        "working": ["git", {"slot": 1}],
        **changes,
    }


def bundle(*rules: dict[str, Any], schema: int = 1, **more: Any) -> bytes:  # noqa: ANN401 - JSON
    return json.dumps({"schema": schema, "rules": rules, **more}).encode()


def many(number: int) -> bytes:
    return bundle(*(rule(uid=f"{n:032x}", failing=[f"p{n}"]) for n in range(number)))


HOSTILE = {
    "nested arrays": b"[" * 1_000_000,
    "nested objects": b'{"a":' * 500_000,
    "a nested rule": bundle(rule(working=[[[[[[[["x"]]]]]]]])),
    "brackets in a string that does not end": b'{"schema": 1, "rules": "' + b"\\" * 1_000_001,
    "too large": b" " * (BYTES_MAX + 1),
    "ten megabytes in one string": bundle(rule(failing=["x" * 10_000_000])),
    "a long string": bundle(rule(failing=["x" * 4_000_000])),
    "too many rules": many(10_001),
    "a million empty lists": b'{"schema": 1, "rules": [' + b"[]," * 1_000_000 + b"[]]}",
    "too many words": bundle(rule(failing=["x"] * 100_000)),
    "one identity twice": bundle(rule(), rule(failing=["gut"])),
    "a NUL": bundle(rule(working=["git\0"])),
    "an escape sequence": bundle(rule(working=["git", "\x1b]0;x\x07"])),
    "text turned around": bundle(rule(working=["git", "\u202ex"])),
    "no UTF-8": bundle(rule()).replace(b"gti", b"\xff\xfe"),
    "half a character": bundle(rule(working=["git", "\ud800"])),
    "a pattern that backtracks": bundle(rule(working=["x"], pattern="(a+)+$")),
    "a text for one": bundle(rule(failing=["a" * 100_000 + "!"])),
    "another schema": bundle(rule(), schema=999),
    "a huge schema": b'{"schema": 1' + b"0" * 5000 + b', "rules": []}',
    "no schema": b'{"rules": []}',
    "a name that climbs": bundle(rule(), name="../../.bashrc"),
    "an identity that climbs": bundle(rule(uid="../../../../etc/passwd")),
    "a folder": bundle(rule(directory="/root")),
    "counts": bundle(rule(r=100, c=100)),
    "a failure that is none": bundle(rule(failure="eval $(id)")),
    "a recovery that is none": bundle(rule(recovery="../x")),
    "no program": bundle(rule(failing=[{"slot": 0}])),
    "no remedy": bundle(rule(working=[])),
    "a slot from nowhere": bundle(rule(failing=["gti"])),
    "a slot twice": bundle(rule(failing=["gti", {"slot": 1}, {"slot": 1}])),
    "a list": b"[1, 2]",
    "an archive": b"PK\x03\x04" + bytes(1000),
    "nothing": b"",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_bundle_is_refused_at_once_with_one_line(content: bytes) -> None:
    """T13: bombs, identities twice, NUL, long strings, other versions, names that climb."""
    begun = time.process_time()
    with pytest.raises(FlightrecError) as refused:
        read_bundle(content)
    assert time.process_time() - begun < 1
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


LEFT_OUT = {
    "git push --force": "",
    "rm -rf build": "",
    "curl -k site": "",
    "mysql -uroot -pZq9hunter2 shop": "it holds a secret",
    "cat ~/.ssh/id_rsa": "it names a place in a file system",
    "cat ../../etc/passwd": "it names a place in a file system",
    "make -C /root": "it names a place in a file system",
    "git add @notes.md": "it could be read as an import of a file",
    "echo 'a": "it is not one whole command",
}


@pytest.mark.parametrize(("command", "reason"), LEFT_OUT.items())
def test_what_would_never_be_offered_is_left_out(command: str, reason: str) -> None:
    """T12, T13: dangers, secrets, places, imports of files."""
    rules = read_bundle(bundle(rule(failing=["x"], working=command.split())))
    (one,) = judge(rules, lambda _uid, _core: False, Redactor())
    assert one.fate is Fate.LEFT_OUT
    assert one.reason
    assert reason in one.reason


def test_what_a_person_should_look_at_is_said() -> None:
    words = ["git", "clone", "https://example.org/x"]
    (one,) = judge(read_bundle(bundle(rule(working=words))), lambda _uid, _core: False, Redactor())
    assert (one.fate, one.reason) == (Fate.NEW, "it holds an address")


@pytest.fixture
def book() -> Iterator[Rulebook]:
    with contextlib.closing(Store.open(":memory:")) as store:
        yield Rulebook(store.connection)


def test_what_is_exported_can_be_imported_and_says_nothing_of_this_machine(book: Rulebook) -> None:
    taught = person.learn(book, Safe("gti ..."), Safe("git ..."), ACT)
    person.learn(book, Safe("make x"), Safe("make -C /home/me x"), ACT)
    person.learn(book, Safe("make y"), Safe("make z"), Act(1, "/home/me/p"), everywhere=False)
    person.learn(book, Safe("git pish"), Safe("git push --force"), ACT)
    content = make_bundle(book.rules(), Redactor())
    assert b"/home" not in content
    (one,) = judge(read_bundle(content), lambda _uid, _core: False, Redactor())
    assert one.fate is Fate.NEW
    assert (one.uid, one.trigger, one.remedy) == (taught.uid, taught.trigger, taught.remedy)
    (again,) = judge(read_bundle(content), book.knows, Redactor())
    assert again.fate is Fate.KNOWN


def test_the_persons_own_patterns_hold_for_bundles(book: Rulebook) -> None:
    person.learn(book, Safe("make zebra-7"), Safe("make all"), ACT)
    assert len(read_bundle(make_bundle(book.rules(), Redactor()))) == 1
    assert read_bundle(make_bundle(book.rules(), Redactor(deny=("zebra-[0-9]+",)))) == ()


def test_an_imported_rule_waits_for_approval_and_is_then_hinted(home: Path) -> None:
    """T13: no evidence, no hint and no way out again before that; all is shown before."""
    file = home / "team.json"
    danger = rule(uid="cd" * 16, failing=["git", "pish"], working=["git", "push", "--force"])
    file.write_bytes(bundle(rule(), danger))
    with DaemonProcess(home) as daemon:
        nobody = flightrec("bundle", "import", str(file), home=home)
        assert nobody.returncode == 2
        assert "+ gti ... → git ...  [command not found]" in nobody.stdout
        assert "- git pish → git push --force" in nobody.stdout
        assert daemon.query("SELECT count(*) FROM rules") == [(0,)]

        done = flightrec("bundle", "import", "--yes", str(file), home=home)
        assert "1 rule imported" in done.stdout, done.stderr
        ((name, *row),) = daemon.query("SELECT id, hex(uid), status, origin, r, c, d FROM rules")
        assert row == ["AB" * 16, "candidate", "import:team", 0, 0, 0]
        with daemon.relay() as relay:
            _, reply = relay.ask("gti status")
            assert reply.text == b""
        out = flightrec("bundle", "export", "-", home=home)
        assert json.loads(out.stdout)["rules"] == []
        assert "it was imported" in flightrec("rules", "show", name, home=home).stdout

        assert flightrec("rules", "approve", name, home=home).returncode == 0
        with daemon.relay() as relay:
            _, reply = relay.ask("gti status")
            assert b"git status" in reply.text
        assert len(json.loads(flightrec("bundle", "export", "-", home=home).stdout)["rules"]) == 1
        again = flightrec("bundle", "import", "--yes", str(file), home=home)
        assert "0 new rules, 1 known, 1 left out" in again.stdout


def test_a_refused_bundle_changes_nothing_and_a_file_is_never_overwritten(home: Path) -> None:
    """T13: also past the command line, which judges first."""
    file = home / "x.json"
    file.write_bytes(HOSTILE["one identity twice"])
    with DaemonProcess(home) as daemon:
        result = flightrec("bundle", "import", "--yes", str(file), home=home)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == f"flightrec: the bundle holds the rule {'ab' * 16} twice\n"
        climbing = flightrec("bundle", "import", "--name", "../../x", str(file), home=home)
        assert climbing.returncode == 2
        for name, rules in (("../x", [rule()]), ("x", [rule(), rule()]), ("x", [rule(c=1)])):
            with pytest.raises(FlightrecError):
                daemon.ask("bundle_import", name=name, rules=rules)
        assert daemon.query("SELECT count(*) FROM rules") == [(0,)]
        kept = flightrec("bundle", "export", str(file), home=home)
        assert (kept.returncode, "File exists" in kept.stderr) == (1, True)
        assert file.read_bytes() == HOSTILE["one identity twice"]


def test_a_large_bundle_is_taken_in_parts(home: Path) -> None:
    file = home / "large.json"
    file.write_bytes(many(1_500).replace(b'{"slot": 1}', b'"x"'))
    with DaemonProcess(home) as daemon:
        result = flightrec("bundle", "import", "--yes", str(file), home=home)
        assert "1500 rules imported" in result.stdout, result.stdout[-300:] + result.stderr
        assert daemon.query("SELECT count(*), max(c) FROM rules") == [(1_500, 0)]


MISSING_BRANCH = "error: pathspec 'mian' did not match any file(s) known to git\n"


def test_a_project_that_shows_the_same_gets_its_own_rule_and_frees_no_import() -> None:
    """T11, T13: a repository and a bundle that belong together come no further than one of them."""
    with contextlib.closing(Store.open(":memory:")) as store:
        shell = Shell(store)
        shell.type("git checkout mian", 1, MISSING_BRANCH)
        shell.type("git checkout main")
        (own,) = rules(store)
        book = Rulebook(store.connection)
        book.delete(own)
        draft = msgspec.structs.replace(
            own,
            id="ERR-20261130-900",
            uid=bytes(16),
            origin=Origin.IMPORT,
            source="team",
            scope=Scope.USER,
            project="",
            proven=False,
            c=0,
            seen_in=(),
        )
        with store.transaction():
            imported = book.update(draft)
        assert imported.status is Status.CANDIDATE
        assert imported.is_quarantined

        for _ in range(3):
            other = Shell(store)
            other.type("git checkout mian", 1, MISSING_BRANCH)
            other.type("git checkout main")

        still, own = sorted(rules(store), key=lambda rule: rule.origin.value)
        assert (still.origin, still.status, still.c) == (Origin.IMPORT, Status.CANDIDATE, 0)
        assert (own.scope, own.project, own.c) == (Scope.PROJECT, "/p", 3)
        with store.transaction():
            Rulebook(store.connection).widen(own)
        assert [rule.id for rule in rules(store)] == [own.id]


def test_what_the_person_s_own_shells_prove_needs_no_approval() -> None:
    """It would have been learned everywhere without the bundle, too."""
    with contextlib.closing(Store.open(":memory:")) as store:
        shell = Shell(store)
        shell.learn("gti x", "git x")
        (own,) = rules(store)
        with store.transaction():
            changes = {"origin": Origin.IMPORT, "proven": False, "c": 0}
            Rulebook(store.connection).update(own, **changes)
        Shell(store).learn("gti y", "git y")
        (rule,) = rules(store)
        assert (rule.status, rule.c) == (Status.ACTIVE, 1)
