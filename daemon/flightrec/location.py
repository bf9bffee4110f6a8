"""A document that belongs to the person: where it is, how it is to change, and what went wrong."""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from flightrec.errors import FlightrecError

Bare = Callable[[bytes], bytes]
"""A document → what is the person's of it."""

Edit = Callable[[bytes | None], bytes | None]
"""The document that stands there (None: no file) → the one that should stand there (None: none)."""


@dataclass(frozen=True, slots=True)
class Location:
    """A file, and the folder out of which links on the way to it must not lead."""

    path: Path
    boundary: Path


@contextlib.contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Let what goes wrong name the file. Raises FlightrecError."""
    try:
        yield
    except FlightrecError as error:
        raise FlightrecError(f"{path}: {error}") from None
    except OSError as error:
        raise FlightrecError(f"{path}: {error.strerror}; left alone") from None


def resolve(location: Location) -> tuple[Path, Path]:
    """Return the file at the end of all links, and the boundary that it must lie in.

    Raises FlightrecError where it does not.
    """
    real = Path(os.path.realpath(location.path))
    boundary = Path(os.path.realpath(location.boundary))
    if boundary not in real.parents:
        raise FlightrecError(f"leads out of {location.boundary} to {real}; left alone")
    if location.path.is_symlink() and not real.exists():
        raise FlightrecError("is a link to nothing; left alone")
    return real, boundary
