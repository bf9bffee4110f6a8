"""A tail that may hold what a program printed of secrets is not kept."""

from pathlib import Path

import pytest

from daemon_process import DaemonProcess
from fake_relay import finished, starting
from flightrec.secret_output import is_private_tail
from flightrec.shell_words import parse
from flightrec.wire import TailSource

PRIVATE = (
    "pass show db/prod; false",
    "pass db/prod; false",
    "op read op://vault/db/password && make deploy",
    "sudo vault kv get -field=x secret/db | cut -c99 | grep y",
    "kubectl -n prod get secret/db -o yaml | yq .data.x; exit 3",
    "aws --region eu-west-1 secretsmanager get-secret-value --secret-id db && false",
    "gpg --quiet -d notes.gpg | grep pin",
    "cat ~/.netrc /nowhere; false",
    "tail -n 3 certs/site.key && nginx -t",
    "echo $GITHUB_TOKEN; ls nowhere",
    'printf "%s\\n" "${DB_PASSWORD}" && false',
    "printenv API_KEY && false",
    "echo $(pass show db) && false",
    "diff <(op read op://a/b/c) local",
    "echo `bw get password x`; false",
    "pwgen 20 1; false",
)
PUBLIC = (
    "pass ls; make",
    "cat README.md nowhere; false",
    "echo $PWD $HOME; ls nowhere",
    "echo token expired; false",
    "kubectl get pods && make deploy",
    "git status; npm test",
    "openssl x509 -in a.crt -text | grep x",
    "terraform plan && false",
    "echo $(date) && false",
)


@pytest.mark.parametrize("line", PRIVATE)
def test_output_beside_which_a_secret_was_printed_is_private(line: str) -> None:
    for source in (TailSource.MERGED, TailSource.STDOUT, TailSource.PANE):
        assert is_private_tail(parse(line), source, 1)
    assert not is_private_tail(parse(line), TailSource.STDERR, 1)


@pytest.mark.parametrize("line", PUBLIC)
def test_other_output_teaches(line: str) -> None:
    assert not is_private_tail(parse(line), TailSource.MERGED, 1)


def test_what_such_a_program_says_when_it_fails_alone_teaches() -> None:
    line = parse("op read op://vault/db/password")

    assert not is_private_tail(line, TailSource.MERGED, 1)
    assert is_private_tail(line, TailSource.MERGED, None)


def test_a_password_that_was_shown_in_a_terminal_reaches_no_file(home: Path) -> None:
    """T7: it looks like any word, and its command failed for another reason."""
    printed = "correct-horse-battery"
    with DaemonProcess(home) as daemon, daemon.relay() as relay:
        begun = starting("pass show db; ls nowhere", relay.session)
        tail = f"{printed}\nls: cannot access 'nowhere': No such file or directory\n".encode()
        mixed = {"tail": tail, "tail_source": TailSource.MERGED, "tail_total": len(tail)}
        relay.send(begun, finished(begun, 2, **mixed))
        relay.wait_for_commit(begun.run)
    kept = [file.read_bytes() for file in home.rglob("*") if file.is_file()]
    assert any(b"ls nowhere" in data for data in kept)
    assert not any(printed.encode() in data for data in kept)
