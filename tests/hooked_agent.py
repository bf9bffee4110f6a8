"""An agent played by a test: its hooks through the real helper, its shells on the real socket."""

import contextlib
import os

from daemon_process import DaemonProcess, wait_until
from fake_relay import finished, starting
from flightrec.store import RecordedRun, RunFilter, Store
from flightrec.wire import CommandStarting, Reply, SessionEnded, Source
from hook_samples import SAMPLES, Fields, answer_to

SESSION_KEYS = {"session_id", "sessionId", "conversation_id", "session"}


class Hooked:
    """An agent's session: its hooks through the real helper, its shell through the real socket.

    Without ``in_run`` its client was not started by ``flightrec run``.
    """

    def __init__(
        self,
        daemon: DaemonProcess,
        agent: str,
        *,
        in_run: bool = True,
        session: bytes | None = None,
        **variables: str,
    ) -> None:
        self.daemon, self.agent = daemon, agent
        self.sample = SAMPLES[agent]
        self.session = session or os.urandom(16)
        self.variables = {"FLIGHTREC_SESSION": self.session.hex(), **variables} if in_run else {}
        self.home = daemon.paths.home
        self.client_session = f"client {self.session.hex()}"
        self.shell = daemon.relay(b"sh")

    def hook(self, payload: Fields) -> Fields:
        return answer_to(self.agent, self.named(payload), self.home, **self.variables)

    def named(self, payload: Fields) -> Fields:
        """Return the payload with this session's name."""
        return {**payload, **dict.fromkeys(SESSION_KEYS & set(payload), self.client_session)}

    def before(self, command: str, use: str = "use-1") -> Fields:
        return self.hook(self.sample.before(command, use))

    def passed(self, command: str, output: str = "", use: str = "use-1") -> Fields:
        return self.hook(self.sample.passed(command, use, output))

    def failed(self, command: str, output: str, status: int = 1, use: str = "use-1") -> Fields:
        assert self.sample.failed is not None
        return self.hook(self.sample.failed(command, use, output, status))

    def start(self, command: str, **fields: object) -> CommandStarting:
        usual: dict[str, object] = {
            "source": Source.SH,
            "agent": self.agent.encode(),
            "shell": b"bash",
            "tty": b"",
        }
        begun = starting(command, self.session, **{**usual, **fields})
        self.shell.send(begun)
        return begun

    def finish(self, begun: CommandStarting, status: int | None = 0, **fields: object) -> None:
        self.shell.send(finished(begun, status, **fields))

    def fence(self) -> None:
        """Return when the daemon has handled what the shell sent."""
        self.shell.send(finished(starting("", self.session), wants_reply=True))
        self.shell.wait_for(Reply)

    def runs(self, session: bytes | None = None) -> list[RecordedRun]:
        """End the session, for which no other story is waited then; return all that is stored."""
        session = session or self.session
        self.shell.send(SessionEnded(session, 1))
        ended = f"SELECT 1 FROM sessions WHERE session = x'{session.hex()}' AND ended_us > 0"  # noqa: S608 - hex
        wait_until(lambda: self.daemon.query(ended))
        return stored(self.daemon, session)


def stored(daemon: DaemonProcess, session: bytes | None = None) -> list[RecordedRun]:
    with contextlib.closing(Store.open_read_only(daemon.paths.database)) as store:
        return list(reversed(store.recent_runs(100, RunFilter(session=session))))


def missed(daemon: DaemonProcess) -> dict[str, int]:
    return dict(daemon.status()["missed"])
