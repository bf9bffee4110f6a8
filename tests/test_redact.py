"""Secrets never get past the redactor, and whatever is none gets past it unchanged."""

import base64
import io
import itertools
import json
import logging
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from daemon_process import DaemonProcess
from fake_relay import finished, starting
from flightrec import redact
from flightrec.commands import redact as command
from flightrec.errors import FlightrecError
from flightrec.redact import PLACEHOLDER, TEXT_MAX, UNREDACTABLE, Redactor
from flightrec.secret_memory import CHARACTERS_MAX, SECRETS_MAX, SESSIONS_MAX, SecretMemory
from flightrec.secret_names import Trust, classify_name
from flightrec.secret_patterns import compile_pattern
from flightrec.secret_tables import PROGRAMS, VENDORS
from flightrec.secret_text import Finding
from growth import assert_linear
from redaction import corpus

SEEDS = (1, 2, 3)
SESSION = b"s" * 16
OTHER = b"o" * 16


@pytest.fixture(scope="module")
def redactor() -> Redactor:
    return Redactor()


def redacted(text: str) -> str:
    return Redactor().redact_command(text).text


# --- the corpus ------------------------------------------------------------------------------


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert len([*corpus.positives()]) >= 250
    assert len([*corpus.negatives()]) >= 500
    assert all(sample.secrets for sample in corpus.positives())


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_hundred_secrets_at_most_one_gets_past(redactor: Redactor, seed: int) -> None:
    """Bar: recall ≥ 99 %; a secret counts as leaked if eight characters in a row survive."""
    total, leaks = 0, []
    for text, secrets in corpus.positives(seed):
        safe = redactor.redact_command(text).text
        total += len(secrets)
        leaks += [(secret, text) for secret in secrets if corpus.leaked(secret, safe)]
    assert len(leaks) <= total * 0.01, leaks


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_thousand_harmless_lines_at_most_five_change(redactor: Redactor, seed: int) -> None:
    lines = [*corpus.negatives(seed)]
    changed = [line for line in lines if redactor.redact_command(line).text != line]
    assert len(changed) <= len(lines) * 0.005, changed


@pytest.mark.parametrize("seed", SEEDS)
def test_harmless_lines_pass_together_as_one_long_output(redactor: Redactor, seed: int) -> None:
    """Lines of one screen do not become secrets by standing below each other."""
    lines = [line for line in corpus.negatives(seed) if line.count("'") % 2 == 0]
    changed = 0
    for first in range(0, len(lines), 40):
        screen = "\n".join(lines[first : first + 40])
        safe = redactor.redact_text(screen)
        changed += sum(a != b for a, b in zip(screen.split("\n"), safe.split("\n"), strict=False))
    assert changed <= len(lines) * 0.01


@pytest.mark.full
def test_ordinary_manuals_pass_unchanged(redactor: Redactor) -> None:
    """Bar: at most one line in a thousand of real text changes."""
    pages = sorted(Path("/usr/share/doc").rglob("*.txt"))[:400]
    lines = changed = 0
    for page in pages:
        for line in page.read_text("utf-8", "replace").splitlines():
            lines += 1
            changed += redactor.redact_text(line) != line
    if lines < 1000:
        pytest.skip("no documentation is installed here")
    assert changed <= lines * 0.001


# --- tokens of known makers ------------------------------------------------------------------

CONTEXTS: dict[str, Callable[[str], str]] = {
    "an argument": lambda token: f"acmectl run {token} now",
    "quotes": lambda token: f'x="{token}" ./run',
    "json": lambda token: json.dumps({"a": f"line\n{token}\nline"}),
    "an error": lambda token: f"log\nerror: rejected {token}.\nnext",
    "a sentence": lambda token: f"it's ({token}), see above",
    "an encoded query": lambda token: f"x=%3D{token}&y=1",
    "itself": lambda token: token,
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_makers_token_is_found_wherever_it_stands(
    redactor: Redactor, context: str, seed: int
) -> None:
    for name, token in corpus.vendor_tokens(seed):
        safe = redactor.redact_text(CONTEXTS[context](token.text))
        assert not any(corpus.leaked(secret, safe) for secret in token.secrets), f"{name}: {safe}"


def test_each_maker_in_the_table_has_an_example_and_there_are_sixty() -> None:
    named = {name for name, _ in corpus.vendor_tokens()}
    assert named == {vendor.name for vendor in VENDORS}
    assert len(named) >= 60


@pytest.mark.parametrize(
    "token", ["task-i8fElZJmDFuik8d3EOhlxVW54ct", "desk-check-15b25349", "AKIA=1"]
)
def test_words_that_end_like_a_makers_prefix_are_no_tokens(token: str) -> None:
    assert redacted(f"run {token}") == f"run {token}"


# --- programs --------------------------------------------------------------------------------


def test_each_program_in_the_table_is_tried_and_there_are_sixty() -> None:
    names = {name for program in PROGRAMS for name in program.names.split()}
    assert len(names) >= 60
    samples = [sample.text for sample in corpus.positives()] + [*corpus.negatives()]
    words = [set(re.findall(r"[^\s'\"|;&()`$]+", text)) for text in samples]
    for program in PROGRAMS:
        wanted = set(program.subcommand.split())
        assert any(tried & set(program.names.split()) and wanted <= tried for tried in words), (
            f"no sample for {program.names} {program.subcommand}"
        )


@pytest.mark.parametrize(
    ("line", "safe"),
    [
        ("mysql -u root -pS3cret99 shop", "mysql -u root -p‹secret:pass› shop"),
        ("mysql -u root -p shop", "mysql -u root -p shop"),
        ("curl -sSu bob:S3cret99 https://x", "curl -sSu bob:‹secret:pass› https://x"),
        ("sshpass -p S3cret99 ssh -p 22 host", "sshpass -p ‹secret:pass› ssh -p 22 host"),
        ("echo S3cret99 | sudo -S ls", "echo ‹secret:pass› | sudo -S ls"),
        ("echo S3cret99 | sudo ls", "echo S3cret99 | sudo ls"),
        ("sudo -S ls <<< S3cret99", "sudo -S ls <<< ‹secret:pass›"),
        ("docker exec db mysql -pS3cret99", "docker exec db mysql -p‹secret:pass›"),
        ('sh -c "mysql -pS3cret99"', 'sh -c "mysql -p‹secret:pass›"'),
        ("x=$(curl -u b:S3cret99 u)", "x=$(curl -u b:‹secret:pass› u)"),
        ("A_TOKEN='a b'\"c\" ./x", "A_TOKEN=‹secret:token› ./x"),
        ("tool --db-password 'a b c'", "tool --db-password '‹secret:pass›'"),
        ("chpasswd <<EOF\nbob:S3cret99\nEOF", "chpasswd <<EOF\nbob:‹secret:pass›\nEOF"),
        ("vault kv put s/x a=S3cret99", "vault kv put s/x a=‹secret:pass›"),
        ("/usr/bin/mysql -pS3cret99", "/usr/bin/mysql -p‹secret:pass›"),
        ("+ mysql -pS3cret99", "+ mysql -p‹secret:pass›"),
    ],
)
def test_only_the_secret_is_replaced_and_the_line_stays_a_line(line: str, safe: str) -> None:
    assert redacted(line) == safe


@pytest.mark.parametrize(
    "reference",
    [
        "$PASSWORD", "${PASSWORD:?}", "$(pass show x)", "`cat pw`", "<password>", "{{ password }}",
        "${{ secrets.PW }}", "%PASSWORD%", "op://vault/item/field", "********", "xxxxxxxx",
        "[REDACTED]", "YOUR_PASSWORD_HERE", "changeme", "@secret.txt", "env:PW", "***",
        "‹secret:pass›",
    ],
)  # fmt: skip
def test_references_and_masks_are_left_alone(reference: str) -> None:
    for line in (
        f'tool --password "{reference}"',
        f'export DB_PASSWORD="{reference}"',
        f'curl -u "bob:{reference}" https://x.io',
        f'curl -H "Authorization: Bearer {reference}" https://x.io',
        f'docker login -u bob -p "{reference}" r.io',
    ):
        assert redacted(line) == line


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("DB_PASSWORD", True), ("awsSecretAccessKey", True), ("--api-key", True), ("PGPASS", True),
        ("SECRET_KEY_BASE", True), ("spring.datasource.password", True), ("csrfToken", True),
        ("X-Auth-Token", True), ("new_password", True), ("-Dgpg.passphrase", True),
        ("PASSWORD_FILE", False), ("TOKEN_TTL", False), ("MAX_TOKENS", False), ("passenger", False),
        ("public_key", False), ("--no-password", False), ("tokenizer", False), ("compass", False),
        ("KEYBOARD", False), ("SECRET_NAME", False), ("next_token", False), ("AUTHOR", False),
        ("password.py", False), ("passwordPolicy", False), ("PASSWORD_MIN_LENGTH", False),
    ],
)  # fmt: skip
def test_a_name_is_judged_by_its_parts(name: str, secret: bool) -> None:  # noqa: FBT001 - the expected answer
    named = classify_name(name)
    assert (named is not None and named.trust is Trust.SURE) == secret


# --- keys that were cut ----------------------------------------------------------------------

KEY_LINES = ["".join(random.Random(n).choices("ABCDEFabcdef0123456789+/", k=64)) for n in range(8)]  # noqa: S311 - a key of nobody


@pytest.mark.parametrize(("lost_head", "lost_tail"), [(0, 0), (1, 0), (3, 0), (0, 1), (0, 3)])
@pytest.mark.parametrize("line_break", ["\n", "\\n", "\r\n"])
def test_a_private_key_is_found_without_its_head_or_its_tail(
    redactor: Redactor, lost_head: int, lost_tail: int, line_break: str
) -> None:
    lines = ["-----BEGIN RSA PRIVATE KEY-----", *KEY_LINES, "-----END RSA PRIVATE KEY-----"]
    kept = lines[lost_head : len(lines) - lost_tail]
    safe = redactor.redact_text(line_break.join(kept))
    assert not any(corpus.leaked(line, safe) for line in KEY_LINES)


def test_what_follows_a_key_that_was_cut_is_kept(redactor: Redactor) -> None:
    text = (
        "-----BEGIN EC PRIVATE KEY-----\n" + "\n".join(KEY_LINES) + "\nerror: cannot parse the key"
    )
    assert "error: cannot parse the key" in redactor.redact_text(text)


def test_certificates_and_public_keys_stay(redactor: Redactor) -> None:
    for label in ("CERTIFICATE", "PUBLIC KEY", "PGP PUBLIC KEY BLOCK"):
        text = f"-----BEGIN {label}-----\n" + "\n".join(KEY_LINES) + f"\n-----END {label}-----"
        assert redactor.redact_text(text) == text


# --- memory of a session ---------------------------------------------------------------------


def test_a_commands_secret_is_taken_out_of_its_own_error() -> None:
    redactor = Redactor()
    assert redactor.redact_command("mysql -uroot -pr7Kq2wXz9", SESSION).found
    error = "ERROR 1045: no access with r7Kq2wXz9 for root"
    assert "r7Kq2wXz9" not in redactor.redact_text(error, SESSION)


def test_an_encoded_secret_is_taken_out_as_well() -> None:
    redactor = Redactor()
    secret = "r7Kq 2w/Xz9+öä"  # noqa: S105 - of nobody
    redactor.redact_command(f"curl -u 'bob:{secret}' https://x.io", SESSION)
    forms = [
        quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1],
        base64.b64encode(secret.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(f"bob:{secret}".encode()).decode(),
        base64.b64encode(f"ab:{secret}:x".encode()).decode(),
    ]  # fmt: skip
    for form in forms:
        safe = redactor.redact_text(f"sent {form} away", SESSION)
        assert PLACEHOLDER.search(safe), form
        assert secret not in safe


def test_half_a_secret_at_the_cut_end_of_an_output_is_taken_out() -> None:
    redactor = Redactor()
    redactor.redact_command("tool --token r7Kq2wXz9mN4bV1cT6", SESSION)
    assert redactor.redact_text("Xz9mN4bV1cT6: rejected", SESSION) == "‹secret:repeated›: rejected"
    assert redactor.redact_text("rejected: r7Kq2wXz9mN", SESSION) == "rejected: ‹secret:repeated›"


def test_the_memory_of_one_session_is_not_anothers() -> None:
    redactor = Redactor()
    redactor.redact_command("mysql -pr7Kq2wXz9", SESSION)
    assert redactor.redact_text("r7Kq2wXz9", OTHER) == "r7Kq2wXz9"
    assert redactor.redact_text("r7Kq2wXz9") == "r7Kq2wXz9"


def test_a_weak_password_does_not_blank_the_words_of_its_session() -> None:
    redactor = Redactor()
    redactor.redact_command("PGPASSWORD=app psql -U app -h db", SESSION)
    redactor.redact_command("mysql -uroot -ptest shop", SESSION)
    redactor.redact_command("PGPASSWORD=postgres psql -h db", SESSION)
    error = 'role "app" of postgres does not exist in test'
    assert redactor.redact_text(error, SESSION) == error


def test_a_secret_that_a_command_holds_twice_goes_twice() -> None:
    safe = redacted("DB_PASSWORD=r7Kq2wXz9 ./x && echo r7Kq2wXz9")
    assert "r7Kq2wXz9" not in safe
    assert len(PLACEHOLDER.findall(safe)) == 2


def test_the_memory_has_bounds() -> None:
    memory = SecretMemory()
    for number in range(SECRETS_MAX * 3):
        memory.remember(SESSION, [f"secret-{number:05}-x9"])
    assert not [*memory.find(SESSION, "secret-00000-x9")]
    assert [*memory.find(SESSION, f"secret-{SECRETS_MAX * 3 - 1:05}-x9")]
    memory.remember(OTHER, [f"{n:04}" + "x9" * 120 for n in range(2 * CHARACTERS_MAX // 240)])
    assert len([*memory.find(OTHER, "x9" * 240)]) <= 4 * CHARACTERS_MAX // 240
    for number in range(SESSIONS_MAX):
        memory.remember(number.to_bytes(16, "big"), ["another-secret-7"])
    assert not [*memory.find(SESSION, f"secret-{SECRETS_MAX * 3 - 1:05}-x9")]


# --- all the way to the disk -----------------------------------------------------------------


def encoded(secret: str) -> list[bytes]:
    """Return a secret as a program may print it."""
    raw = secret.encode()
    return [raw, quote(secret, safe="").encode(), base64.b64encode(raw)]


def test_no_secret_of_the_corpus_reaches_a_file(home: Path) -> None:
    """T7: neither from a command nor, in any form, from the error text that follows it."""
    samples = [s for s in corpus.positives() if all(len(x) >= 10 for x in s.secrets)][::4]
    with DaemonProcess(home) as daemon:
        for sample in samples:
            with daemon.relay() as relay:
                forms = [form for secret in sample.secrets for form in encoded(secret)]
                begun = starting(sample.text, relay.session)
                tail = b"error: rejected " + b" and ".join(forms)
                relay.send(begun, finished(begun, 1, tail=tail, tail_total=len(tail)))
                relay.wait_for_commit(begun.run)
        files = [path for path in daemon.paths.state.rglob("*") if path.is_file()]
        kept = {path: path.read_bytes() for path in files}
    assert any("‹secret:".encode() in content for content in kept.values())
    for sample in samples:
        for form in (form for secret in sample.secrets for form in encoded(secret)):
            core = form.rstrip(b"=")[:-1]  # the last character is shared with what follows
            held = [path.name for path, content in kept.items() if core in content]
            assert not held, (sample.text, form)


# --- properties ------------------------------------------------------------------------------

FRAGMENTS = [
    "password=", "token: ", "--password ", "-p", "mysql -p", "curl -u a:", "://", "@", ":", "=",
    '"', "'", "`", "$(", ")", "<<EOF\n", "EOF\n", "<<<", "|", "sudo -S ",
    "Authorization: Bearer ", "\\", "‹secret:pass›", "‹secret:", "›", "…",
    "-----BEGIN PRIVATE KEY-----", "\n", "eyJ", "ghp_", "\ud800", "İ", "ß", "\x00", "{", "}", "[",
    "]", ",", ";", "&", "<password>", "</", "cookie: a=", "$6$", "hunter42", "r7Kq2wXz9mN4",
    "kind: Secret\ndata:\n  a: ", "name: X_TOKEN value: ", " ", "\t", "identified by '",
]  # fmt: skip
HOSTILE_TEXT = st.one_of(
    st.text(max_size=300),
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=6)), max_size=30).map("".join),
)
THOROUGH = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


@THOROUGH
@given(HOSTILE_TEXT)
@example("password=\ud800" + "x" * 20)
@example("-u a -p İ=ß")
def test_no_text_makes_it_raise_or_fail(text: str) -> None:
    assert redacted(text) != UNREDACTABLE


@THOROUGH
@given(HOSTILE_TEXT)
@example("password=‹secret:pass›hunter42")
@example("a://b:‹secret:url›@c@d")
@example("< Set-Cookie: sid=2ZCIFv1Hdsiol auth Bzl5jXKYTwml4FTKPNYEYCY5UVR0ifQ5")
@example(
    "sed -i 's/^password=.*/password=Summer4886/create --name db --value Welcome5453\"' a.conf"
)
def test_what_was_redacted_stays_as_it_is(text: str) -> None:
    once = redacted(text)
    assert redacted(once) == once


def test_lines_torn_in_their_midst_stay_as_they_are_redacted(redactor: Redactor) -> None:
    """An agent's output is cut anywhere: half a quote lets the next secret pass for a word."""
    lines = [sample.text for seed in SEEDS for sample in corpus.positives(seed)]
    chance = random.Random(7)  # noqa: S311 - the same tears every time
    for _ in range(3000):
        head, tail = chance.choice(lines), chance.choice(lines)
        torn = head[: chance.randint(0, len(head))] + tail[chance.randint(0, len(tail)) :]
        once = redactor.redact_text(torn)
        assert redactor.redact_text(once) == once


@THOROUGH
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=8).map("".join))
def test_what_comes_out_is_bounded(unit: str) -> None:
    text = (unit * (TEXT_MAX // len(unit) + 2))[: TEXT_MAX + 100]
    assert len(redacted(text)) <= TEXT_MAX


SECRET = st.from_regex(r"[a-zA-Z][a-zA-Z0-9]{6,14}[0-9][a-zA-Z][0-9]", fullmatch=True)
HOLDERS = [
    "mysql -uroot -p{} shop", "curl -u bob:{} https://x.io", "export A_TOKEN={}",
    "tool --secret {}", "tool --secret={} x", "curl -H 'X-Api-Key: {}' x.io",
    "psql postgres://app:{}@db/x", "password: {}", 'curl -d \'{{"password":"{}"}}\' x.io',
    "echo {} | sudo -S ls", "docker login -u b -p {} r.io", "https://x.io/?access_token={}&a=b",
    "sshpass -p '{}' ssh h", "ALTER USER a PASSWORD '{}'",
]  # fmt: skip


@THOROUGH
@given(SECRET, st.sampled_from(HOLDERS))
def test_whatever_the_secret_is_its_place_gives_it_away(secret: str, holder: str) -> None:
    assert not corpus.leaked(secret, redacted(holder.format(secret)))


WORDS = st.sampled_from([
    "git", "status", "commit", "push", "the", "password", "token", "of", "a", "file", "is", "not",
    "found", "key", "error", "in", "line", "build", "test", "secret", "reset", "login", "user",
    "for", "--verbose", "-q", "src/main.py", "42", "v1.2.3", "&&", "|", ">", "/tmp/out.log",
])  # fmt: skip


@THOROUGH
@given(st.lists(WORDS, max_size=20).map(" ".join))
def test_plain_words_pass_unchanged(text: str) -> None:
    assert redacted(text) == text


HOSTILE_UNITS = [
    "a", "password=", "password='", 'password="', "key:", "a=b ", "mysql -pX;", "://a:b@",
    "a:b@c ", "eyJ", "eyJaaaaaaaaaa.", "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----\nAAAA\n", "cookie: a=b;", "authorization: ", "$(", '"', "<<EOF\n",
    'sh -c "', "<password>x", "name=token,value=", "identified by '", "auth('a','", "+ASt",
    "‹secret:x›", "password=a,b,c,", "kind: secret\ndata:\n  a: b\n", "--token=", "set token ",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE_UNITS)
def test_hostile_text_costs_time_in_proportion_to_its_length(redactor: Redactor, unit: str) -> None:
    text = (unit * (TEXT_MAX // len(unit) + 1))[:TEXT_MAX]

    assert_linear(lambda length: redactor.redact_command(text[:length]), TEXT_MAX // 8, TEXT_MAX)


# --- what cannot be examined -----------------------------------------------------------------


def test_an_error_inside_gives_the_text_up_rather_than_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says what went wrong without a word of the text."""

    def fail(text: str) -> list[Finding]:
        raise ValueError(text)

    monkeypatch.setattr(redact, "find_in_text", fail)
    with caplog.at_level(logging.DEBUG):
        result = Redactor().redact_command("mysql -pr7Kq2wXz9")
    assert result.text == UNREDACTABLE
    assert result.found
    assert "ValueError" in caplog.text
    assert "r7Kq2wXz9" not in caplog.text


def test_a_text_that_is_too_long_ends_at_a_word() -> None:
    text = "word " * 4000 + "ghp_" + "a1" * 18
    safe = redacted(text)
    assert len(safe) <= TEXT_MAX
    assert safe.endswith("word …")


# --- the person's own patterns ---------------------------------------------------------------


def test_a_denied_pattern_is_a_secret_and_an_allowed_one_is_none() -> None:
    redactor = Redactor(allow=["hunter42"], deny=[r"ACME-\d{6}", r"(?i)project \w+-x"])
    safe = redactor.redact_command("open ACME-123456 Project blue-x --password hunter42").text
    assert safe == "open ‹secret:denied› ‹secret:denied› --password hunter42"


@pytest.mark.parametrize(
    "pattern",
    ["(", "(a|b)*c", r"(a)\1", "(?=a)b", "a*", ".*a.*b", r"(\w+\s?)+$", "a{2000}", "(.*x){9}"],
)
def test_a_pattern_that_could_be_slow_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(FlightrecError, match=re.escape(repr(pattern))):
        Redactor(deny=[pattern])


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"ACME-\d{6}", "ACME-123456"), (r"[a-z]+-[0-9]+", "abc-12"), (r"(?:fo|ba)-\w+", "ba-x1"),
        (r".*secret", "my secret"), (r"\bID[0-9A-F]{4,8}\b", "ID12AB"), (r"a(?:b|c)?d", "abd"),
        (r"(?i)[a-z]+7", "ABC7"), (r"x\.y+?z", "x.yyz"), (r"[]a]+b", "]ab"),
    ],
)  # fmt: skip
def test_a_bounded_pattern_means_what_was_written(pattern: str, text: str) -> None:
    match = compile_pattern(pattern).search(f"  {text}  ")
    assert match is not None
    assert match[0].strip() == text


@pytest.mark.parametrize(
    "pattern", [r"\w+@\w+\.acme\.io", r".*secret", r"[a-z]+-[a-z]+-\d+", r"a{2,}b"]
)
@pytest.mark.parametrize("unit", ["a", "a-", "a@a.acme", "secre "])
def test_a_bounded_pattern_is_quick_on_any_text(pattern: str, unit: str) -> None:
    compiled = compile_pattern(pattern)
    began = time.thread_time()
    compiled.findall((unit * TEXT_MAX)[:TEXT_MAX])
    assert time.thread_time() - began < 2.0


# --- the command -----------------------------------------------------------------------------


class Run(Protocol):
    """Run ``flightrec redact`` with words and input; return what it printed."""

    def __call__(self, *words: str, stdin: bytes = b"") -> str: ...


@pytest.fixture
def run_redact(clean_env: dict[str, str]) -> Run:
    def run(*words: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "flightrec", "redact", *words],
            input=stdin, capture_output=True, env=clean_env, timeout=60, check=True,
        )  # fmt: skip
        return done.stdout.decode()

    return run


def test_the_command_shows_a_line_as_it_would_be_kept(run_redact: Run) -> None:
    assert run_redact("mysql -pr7Kq2wXz9") == "mysql -p‹secret:pass›\n"
    assert run_redact("echo", "a b") == "echo 'a b'\n"


def test_the_command_passes_on_what_is_no_text(clean_env: dict[str, str]) -> None:
    raw = b"DB_PASSWORD=r7Kq2wXz9\n\xff\xfe plain\r\nno newline"
    done = subprocess.run(
        [sys.executable, "-m", "flightrec", "redact"],
        input=raw, capture_output=True, env=clean_env, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == raw.replace(b"r7Kq2wXz9", "‹secret:pass›".encode())


def test_lines_of_json_go_in_and_come_out(run_redact: Run) -> None:
    rows = [
        {"id": 1, "text": "mysql -pr7Kq2wXz9"},
        {"id": "b", "text": "ls"},
        {"id": None, "text": "\ud800"},
    ]
    stdin = "\n\n".join(map(json.dumps, rows)).encode()
    out = [json.loads(line) for line in run_redact("--jsonl", stdin=stdin).splitlines()]
    assert [row["id"] for row in out] == [1, "b", None]
    assert [row["text"] for row in out] == ["mysql -p‹secret:pass›", "ls", "\ud800"]


def test_an_explanation_names_rules_and_never_a_secret(run_redact: Run) -> None:
    for words, stdin in (
        (["mysql -pr7Kq2wXz9"], b""),
        (["--jsonl"], b'{"id":1,"text":"A_TOKEN=r7Kq2wXz9"}'),
    ):
        out = run_redact("--explain", *words, stdin=stdin)
        assert "r7Kq2wXz9" not in out
        assert "program" in out or "assignment" in out


def test_every_rule_that_finds_something_has_an_explanation() -> None:
    redactor = Redactor(deny=["ACME-[0-9]+"])
    texts = [*(sample.text for sample in corpus.positives()), "ACME-1"]
    rules = {finding.rule for text in texts for finding in redactor.explain(text)}
    assert rules <= command.RULES.keys()


@pytest.mark.parametrize("line", [b"{", b"[1]", b'{"id": 1}', b'{"id": 1, "text": 2}'])
def test_a_line_that_is_no_json_is_named_by_its_number(
    clean_env: dict[str, str], line: bytes
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flightrec", "redact", "--jsonl"],
        input=b'{"id":0,"text":"x"}\n' + line,
        capture_output=True,
        env=clean_env,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert b"line 2" in done.stderr


def test_the_persons_patterns_hold_for_the_command(run_redact: Run, home: Path) -> None:
    config = home / ".config/flightrec/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[redaction]\nallow = ["r7Kq2wXz9"]\ndeny = ["ACME-[0-9]{4}"]\n')
    assert run_redact("mysql -pr7Kq2wXz9 ACME-1234") == "mysql -pr7Kq2wXz9 ‹secret:denied›\n"


def test_a_long_stream_is_read_in_parts_of_whole_lines() -> None:
    lines = [f"line {n} password=r7Kq{n}wXz9\n".encode() for n in range(2000)]
    parts = [*command.parts(io.BytesIO(b"".join(lines)))]
    assert "".join(parts).encode() == b"".join(lines)
    assert all(part.endswith("\n") and len(part) <= TEXT_MAX for part in parts)


def test_keys_survive_no_cut_between_two_parts() -> None:
    key = "\n".join(
        ["-----BEGIN PRIVATE KEY-----", *KEY_LINES * 40, "-----END PRIVATE KEY-----", ""]
    )
    redactor = Redactor()
    parts = command.parts(io.BytesIO(key.encode()))
    safe = "".join(command.redact_texts(redactor, itertools.islice(parts, 1), explain=False))
    assert not corpus.leaked(KEY_LINES[0], safe)
