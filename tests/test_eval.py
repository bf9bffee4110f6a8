"""``flightrec eval`` counts as a person would; and our own sessions score no less than they did."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flightrec.commands.eval import compare
from flightrec.corpus import Prediction, predict, read_corpus
from flightrec.errors import FlightrecError
from flightrec.main import main

if TYPE_CHECKING:
    from collections.abc import Iterable

OWN = Path(__file__).parent / "corpus"

PRECISION, RECALL, KIND_ACCURACY = 1.0, 0.997, 0.99
"""What our own sessions score; raise these when they score more, never lower them."""


def write_corpus(
    folder: Path, labels: Iterable[dict[str, Any]], events: Iterable[dict[str, Any]]
) -> Path:
    (folder / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
    packed = "".join(json.dumps(row) + "\n" for row in events).encode()
    (folder / "sessions.jsonl.gz").write_bytes(gzip.compress(packed))
    return folder


def event(session: str, number: int, command: str, status: int = 0, stderr: str = "") -> Any:  # noqa: ANN401 - a JSON object
    return {
        "session": session,
        "i": number,
        "ts": 100.0 + 5 * number,
        "cwd": "/home/ada",
        "shell": "bash",
        "command": command,
        "exit": status,
        "stderr": stderr,
        "stdout_tail": "",
    }


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two sessions: a slip that was mended, and one with nothing to learn."""
    return write_corpus(
        tmp_path,
        [
            {
                "session": "slip",
                "source": "own",
                "family": "git",
                "pairs": [{"failed": 0, "fix": 1, "kind": "replace"}],
                "nothing": None,
                "negative": None,
            },
            {
                "session": "poll",
                "source": "other",
                "family": "net",
                "pairs": [],
                "nothing": "waiting",
                "negative": "polling",
            },
        ],
        [
            event("slip", 0, "gti log", 127, "bash: gti: command not found\n"),
            event("slip", 1, "git log"),
            event("poll", 0, "curl -s localhost", 7),
            event("poll", 1, "curl -s localhost"),
        ],
    )


def test_eval_prints_what_was_found(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(corpus)]) == 0

    printed = capsys.readouterr().out
    assert "precision      1.000" in printed
    assert "recall         1.000" in printed
    assert "0.0 per 100" in printed


def test_eval_prints_json_with_a_schema(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(corpus), "--json"]) == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == 1
    assert printed["items"][0]["found"] == 1
    assert printed["items"][0]["kinds"] == {"replace": [1, 1]}


def test_eval_writes_predictions_for_another_scorer(corpus: Path, tmp_path: Path) -> None:
    target = tmp_path / "found.jsonl"

    assert main(["eval", str(corpus), "--predictions", str(target)]) == 0
    assert [json.loads(line) for line in target.read_text().splitlines()] == [
        {"session": "slip", "failed": 0, "fix": 1, "kind": "replace", "prereq": []}
    ]


def test_eval_takes_one_source(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(corpus), "--source", "other", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["sessions"] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_eval_looks_at_no_folder_of_this_machine(tmp_path: Path) -> None:
    """What somebody else owns is not learned from, but here it only has the same name."""
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / ".git/HEAD").write_text("ref: refs/heads/main\n")
    os.chown(repository, 12345, 12345)
    slip = [
        event("slip", 0, "gti log", 127, "bash: gti: command not found\n"),
        event("slip", 1, "git log"),
    ]
    label = {"session": "slip", "source": "own", "pairs": []}
    write_corpus(tmp_path, [label], [{**one, "cwd": str(repository)} for one in slip])

    assert len(list(predict(read_corpus(tmp_path)))) == 1


def test_eval_says_where_there_is_nothing_to_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", str(tmp_path / "nowhere")]) == 1
    assert "cannot read" in capsys.readouterr().err


def test_a_line_that_cannot_be_read_is_named(corpus: Path) -> None:
    (corpus / "more.jsonl").write_text('{"session": "slip", "i": "one"}\n')

    with pytest.raises(FlightrecError, match=r"more\.jsonl, line 1"):
        read_corpus(corpus)


def test_a_wrong_prediction_counts_against_precision_and_its_session(corpus: Path) -> None:
    sessions = read_corpus(corpus)
    score = compare(sessions, [Prediction("poll", 0, 1, "replace")])

    assert (score.precision, score.recall, score.false_per_100) == (0.0, 0.0, 100.0)


def test_the_same_pair_twice_counts_once_and_an_optional_one_not_at_all(corpus: Path) -> None:
    sessions = read_corpus(corpus)
    twice = [Prediction("slip", 0, 1, "replace")] * 2
    assert compare(sessions, twice).found.total() == 1

    sessions[0].label.pairs[0].optional = True
    score = compare(sessions, twice)
    assert (score.found.total(), score.optional, len(score.wrong)) == (0, 1, 0)


def test_a_tail_is_handed_over_only_where_the_wire_would_carry_it(corpus: Path) -> None:
    sessions = read_corpus(corpus)
    hidden = "bash: gti: command not found\n"
    sessions[0].events[0].exit = 0
    sessions[0].events[0].stderr = hidden
    sessions[0].events[0].command = "gti log"

    assert list(predict(sessions)) == []


def test_a_time_that_runs_backwards_or_far_ahead_harms_nothing(corpus: Path) -> None:
    sessions = read_corpus(corpus)
    sessions[0].events[0].ts = 1e18
    sessions[0].events[1].ts = -1e18

    assert [p.session for p in predict(sessions)] in ([], ["slip"])


def test_no_figure_of_our_own_sessions_falls() -> None:
    sessions = read_corpus(OWN)
    score = compare(sessions, predict(sessions))

    assert len(sessions) >= 1374
    assert score.precision >= PRECISION, score.wrong
    assert score.recall >= RECALL, score.missed
    assert score.kind_accuracy >= KIND_ACCURACY
    assert score.invented == 0
