"""What is taken out of a text before it is kept, and which rule does it."""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from flightrec.client import request
from flightrec.commands.terminal import plural
from flightrec.config import load_settings
from flightrec.errors import ExitCode, FlightrecError
from flightrec.paths import find_paths
from flightrec.redact import TEXT_MAX, Redactor
from flightrec.shell_words import quote

HELP = "show what is taken out of a text before it is kept"

EXAMPLES = (
    ("flightrec redact 'mysql -uroot -psecret7 shop'", "the line as it would be kept"),
    ("flightrec redact --explain < app.log", "also which rules saw something"),
    ("flightrec redact --rescan", "go over all that was recorded, with today's rules"),
    ("flightrec redact --jsonl < texts.jsonl", 'lines {"id", "text"}, in and out'),
)

RULES = {
    "assignment": "a variable with a secret's name",
    "authorization": "an Authorization header",
    "bearer": "a bearer token",
    "call": "a call that logs in",
    "connection": "a connection string",
    "cookie": "a cookie",
    "deny": "one of your own patterns",
    "hash": "the hash of a password",
    "login": "a password or token that follows a user or a login",
    "manifest": "data of a Kubernetes secret",
    "memory": "a secret of an earlier command of the session",
    "name": "a value under a secret's name",
    "netrc": "a line of a netrc file",
    "option": "an option with a secret's name",
    "paired": "a value beside a secret's name",
    "pgpass": "a line of a pgpass file",
    "private-key": "a private key",
    "program": "where this program takes secrets",
    "repeated": "a secret that stands in the text twice",
    "server": "a password of a server or a dialogue",
    "setting": "a setting with a secret's name",
    "sql": "a password in SQL",
    "stated": "a secret that a program tells",
    "stdin": "what is fed to a program that asks for a secret",
    "target": "a password in user:password@host",
    "url": "a password in a URL",
    "vendor": "a token of a known maker",
}
"""What the names of rules mean."""

ASK_EVERY_S = 0.1
PATIENCE_S = 30.0
"""How often the daemon is asked how far it is, and how long it may stand still."""

_PART_MAX = TEXT_MAX // 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("text", nargs="*", help="a command line; standard input if there is none")
    parser.add_argument("--explain", action="store_true", help="name the rules, never the secrets")
    parser.add_argument(
        "--rescan", action="store_true", help="take out of old records what is found today"
    )
    parser.add_argument("--jsonl", action="store_true", help='read and write lines {"id", "text"}')


def run(arguments: argparse.Namespace) -> int:
    """Print the redacted text, or go over the recorded ones."""
    if arguments.rescan:
        return _rescan(arguments)
    settings = load_settings(find_paths().config).redaction
    redactor = Redactor(settings.allow, settings.deny)
    if arguments.jsonl:
        if arguments.text:
            raise FlightrecError("--jsonl reads standard input only", ExitCode.USAGE)
        write(redact_lines(redactor, sys.stdin.buffer, explain=arguments.explain))
    elif arguments.text:
        texts = [arguments.text[0] if len(arguments.text) == 1 else _line(arguments.text)]
        write(redact_texts(redactor, (f"{text}\n" for text in texts), explain=arguments.explain))
    else:
        write(redact_texts(redactor, parts(sys.stdin.buffer), explain=arguments.explain))
    return ExitCode.OK


def _rescan(arguments: argparse.Namespace) -> int:
    """Have the daemon go over all rows, and wait until it has."""
    if arguments.text or arguments.jsonl or arguments.explain:
        raise FlightrecError("--rescan goes alone", ExitCode.USAGE)
    paths = find_paths()
    load_settings(paths.config)  # with a mistake in it, the daemon would use other patterns
    state = request(paths, "rescan", begin=True)
    idle_s = 0.0
    while state["due"]:
        before = state
        time.sleep(ASK_EVERY_S)
        state = request(paths, "rescan")
        idle_s = 0.0 if state != before else idle_s + ASK_EVERY_S
        if idle_s > PATIENCE_S:
            raise FlightrecError(f"it does not get on; {paths.log} may say why, and it goes on")
    print(f"Gone over everything: {plural(state['changed'], 'row')} changed.")
    return ExitCode.OK


def write(texts: Iterable[str]) -> None:
    """Write texts to standard output, bytes that are no UTF-8 as they came."""
    for text in texts:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


def parts(stream: BinaryIO) -> Iterator[str]:
    """Yield a stream's text in parts of whole lines that a redactor takes at once."""
    part: list[str] = []
    length = 0
    for raw in stream:
        line = raw.decode("utf-8", "surrogateescape")
        if part and length + len(line) > _PART_MAX:
            yield "".join(part)
            part, length = [], 0
        part.append(line)
        length += len(line)
    if part:
        yield "".join(part)


def redact_texts(redactor: Redactor, texts: Iterable[str], *, explain: bool) -> Iterator[str]:
    """Yield the texts without secrets, with the rules that saw some below each if asked for."""
    for text in texts:
        safe = redactor.redact_command(text).text
        if not explain:
            yield safe
            continue
        yield safe if safe.endswith("\n") else f"{safe}\n"
        for start, end, kind, rule in redactor.explain(text):
            line = text.count("\n", 0, start) + 1
            column = start - text.rfind("\n", 0, start)
            yield f"  {line}:{column}, {end - start} characters: {kind}: {RULES.get(rule, rule)}\n"


def redact_lines(redactor: Redactor, lines: Iterable[bytes], *, explain: bool) -> Iterator[str]:
    """Yield ``{"id", "text"}`` for each line that holds the same. Raises FlightrecError."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        identity, text = _parse(line, number)
        safe = redactor.redact_command(text).text
        row: dict[str, object] = {"id": identity, "text": safe}
        if explain:
            row["findings"] = [finding._asdict() for finding in redactor.explain(text)]
        yield json.dumps(row, ensure_ascii=not _is_utf8(safe)) + "\n"


def _parse(line: bytes, number: int) -> tuple[object, str]:
    try:
        row = json.loads(line)
        identity, text = row["id"], row["text"]
    except (ValueError, TypeError, LookupError):
        raise FlightrecError(f'line {number} is no {{"id": …, "text": …}}') from None
    if not isinstance(text, str):
        raise FlightrecError(f"line {number}: the text is no string")
    return identity, text


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _line(words: list[str]) -> str:
    return " ".join(map(quote, words))
