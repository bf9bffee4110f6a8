"""The ``flightrec`` command.

Nothing but this file is imported before it is known what is asked for: ``flightrec --version`` is
to cost hardly more than Python itself.
"""

import sys

from flightrec import __version__


def main(argv: list[str] | None = None) -> int:
    """Run one command line (without the program's name); return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    if words in (["--version"], ["-V"]):
        print(f"flightrec {__version__}")
        return 0
    from flightrec.commands import dispatch  # noqa: PLC0415 - see above

    return dispatch(words)
