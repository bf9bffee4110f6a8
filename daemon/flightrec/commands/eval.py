"""``flightrec eval``: how well the learner does on labelled sessions."""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from flightrec.corpus import Pair, Prediction, Session, predict, read_corpus
from flightrec.errors import ExitCode, FlightrecError

NAME = "eval"
HELP = "how well the learner does on labelled sessions"

EXAMPLES = (
    ("flightrec eval tests/corpus", "our own recorded sessions"),
    ("flightrec eval DIR --source recorded --predictions found.jsonl", "for another scorer"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="holds labels.jsonl and sessions")
    parser.add_argument(
        "--source", action="append", default=[], help="only sessions of this source (repeatable)"
    )
    parser.add_argument("--predictions", metavar="FILE", type=Path, help="write what was found")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument(
        "--full", action="store_true", help="hand over every tail, as no helper would"
    )


def run(arguments: argparse.Namespace) -> int:
    """Play the sessions, compare what was found with the labels, print the figures."""
    sessions = read_corpus(arguments.folder, arguments.source)
    if not sessions:
        raise FlightrecError(f"{arguments.folder} holds no sessions of that source")
    predictions = list(predict(sessions, full=arguments.full))
    if arguments.predictions is not None:
        _write(arguments.predictions, predictions)
    score = compare(sessions, predictions)
    if arguments.json:
        print(json.dumps({"schema": 1, "items": [score.figures()]}))
    else:
        print("\n".join(score.lines()))
    return ExitCode.OK


def _write(path: Path, predictions: Sequence[Prediction]) -> None:
    try:
        path.write_bytes(b"".join(msgspec.json.encode(p) + b"\n" for p in predictions))
    except OSError as error:
        raise FlightrecError(f"cannot write {path}: {error.strerror}") from None


@dataclass
class Score:
    """What was found, invented and missed.

    ``clean`` are sessions with nothing to learn, ``invented`` those of them with a rule all the
    same. A pair that was found counts once; an optional one counts neither way.
    """

    sessions: int = 0
    needed: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    right_kind: int = 0
    wrong: list[Prediction] = field(default_factory=list)
    missed: list[tuple[str, Pair]] = field(default_factory=list)
    clean: int = 0
    invented: int = 0
    optional: int = 0

    @property
    def precision(self) -> float:
        """The share of what was found that is right."""
        return _share(self.found.total(), self.found.total() + len(self.wrong))

    @property
    def recall(self) -> float:
        """The share of what is to be found that was found."""
        return _share(self.found.total(), self.needed.total())

    @property
    def f1(self) -> float:
        """The harmonic mean of the two."""
        return _share(2 * self.precision * self.recall, self.precision + self.recall)

    @property
    def kind_accuracy(self) -> float:
        """The share of the pairs found whose kind is the labelled one."""
        return _share(self.right_kind, self.found.total())

    @property
    def false_per_100(self) -> float:
        """Sessions with an invented rule, of 100 with nothing to learn."""
        return 100 * _share(self.invented, self.clean, nothing=0.0)

    def figures(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {
            "sessions": self.sessions,
            "precision": round(self.precision, 4),
            "recall": round(self.recall, 4),
            "f1": round(self.f1, 4),
            "kind_accuracy": round(self.kind_accuracy, 4),
            "false_per_100": round(self.false_per_100, 2),
            "found": self.found.total(),
            "wrong": len(self.wrong),
            "missed": len(self.missed),
            "optional": self.optional,
            "kinds": {kind: [self.found[kind], self.needed[kind]] for kind in sorted(self.needed)},
        }

    def lines(self) -> list[str]:
        """Return the figures as text."""
        kinds = "  ".join(f"{k} {self.found[k]}/{self.needed[k]}" for k in sorted(self.needed))
        return [
            f"sessions       {self.sessions}, pairs to find {self.needed.total()}",
            f"precision      {self.precision:.3f}  ({len(self.wrong)} wrong)",
            f"recall         {self.recall:.3f}  ({len(self.missed)} missed)",
            f"F1             {self.f1:.3f}",
            f"kind accuracy  {self.kind_accuracy:.3f}",
            f"per kind       {kinds}",
            (
                f"false rules    {self.false_per_100:.1f} per 100 sessions with nothing to learn"
                f" ({self.invented} of {self.clean})"
            ),
            *(f"  invented     {p.session} {p.failed} -> {p.fix} ({p.kind})" for p in self.wrong),
            *(f"  missed       {s} {p.failed} -> {p.fix} ({p.kind})" for s, p in self.missed),
        ]


def _share(part: float, whole: float, *, nothing: float = 1.0) -> float:
    return part / whole if whole else nothing


def compare(sessions: Sequence[Session], predictions: Iterable[Prediction]) -> Score:
    """Return how predictions compare with the labels of their sessions."""
    by_session: defaultdict[str, dict[tuple[int, int], Prediction]] = defaultdict(dict)
    for prediction in predictions:
        by_session[prediction.session].setdefault((prediction.failed, prediction.fix), prediction)
    score = Score()
    for session in sessions:
        _judge(session, by_session[session.label.session].values(), score)
    return score


def _judge(session: Session, predictions: Iterable[Prediction], score: Score) -> None:
    label = session.label
    found: set[int] = set()
    wrong = 0
    for prediction in predictions:
        number = _pair_of(prediction, session)
        if number is None:
            score.wrong.append(prediction)
            wrong += 1
        elif label.pairs[number].optional:
            score.optional += 1
        elif number not in found:
            found.add(number)
            score.right_kind += prediction.kind == label.pairs[number].kind
    score.sessions += 1
    score.clean += label.nothing is not None
    score.invented += label.nothing is not None and wrong > 0
    for number, pair in enumerate(label.pairs):
        if not pair.optional:
            score.needed[pair.kind] += 1
            score.found[pair.kind] += number in found
            if number not in found:
                score.missed.append((label.session, pair))


def _pair_of(prediction: Prediction, session: Session) -> int | None:
    """Return the number of the labelled pair that a prediction stands for, a required one first."""
    fitting = [
        number
        for number, pair in enumerate(session.label.pairs)
        if pair.failed == prediction.failed and _is_fix(prediction.fix, pair, session)
    ]
    return min(fitting, key=lambda n: session.label.pairs[n].optional, default=None)


def _is_fix(fix: int, pair: Pair, session: Session) -> bool:
    """Whether an event is the pair's fix, or the very same command once more."""
    if fix in pair.accepted:
        return True
    events = {event.i: event for event in session.events}
    later, labelled = events.get(fix), events.get(pair.fix)
    if later is None or labelled is None or fix < pair.fix or later.exit != 0:
        return False
    return later.command.strip() == labelled.command.strip()
