"""The one error that a person can act on, and the exit codes of the command line."""

import enum


class ExitCode(enum.IntEnum):
    """What the exit status of ``flightrec`` means."""

    OK = 0
    TROUBLE = 1
    USAGE = 2
    BUG = 3
    NO_DAEMON = 4


class FlightrecError(Exception):
    """Trouble that the person can mend: one line that says what to do.

    It is raised anywhere and caught once, in ``main``, which prints the line and exits with
    ``exit_code``.
    """

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.TROUBLE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class NoDaemonError(FlightrecError):
    """Nobody answers at the socket."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.NO_DAEMON)
