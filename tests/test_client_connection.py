"""A helper says what it has to say and goes; the daemon's answer comes too late for it."""

import asyncio
import os
import socket

from flightrec.client_connection import ClientConnection
from flightrec.missed import Refused
from flightrec.wire import PROTOCOL, AnyMessage, Hello, Request, SessionEnded, encode


class Heard:
    """The daemon's part, as far as a connection needs it."""

    def __init__(self) -> None:
        self.messages: list[AnyMessage] = []
        self.dismissed = asyncio.Event()

    def admit(self, _: ClientConnection) -> Refused | None:
        return None

    def dismiss(self, _: ClientConnection, __: Refused | None) -> None:
        self.dismissed.set()

    def receive(self, message: AnyMessage, _: ClientConnection) -> None:
        self.messages.append(message)

    def request(self, request: Request, _: ClientConnection) -> None:
        raise AssertionError(request)


def test_what_a_helper_said_before_it_left_is_heard_though_it_takes_no_answer() -> None:
    said = [SessionEnded(os.urandom(16)) for _ in range(50)]

    async def meet() -> list[AnyMessage]:
        heard = Heard()
        ours, theirs = socket.socketpair()

        class LateAnswer(ClientConnection):
            """Between hello and its answer, the helper says the rest and leaves."""

            def _greet(self, hello: Hello) -> None:
                for message in said:
                    theirs.sendall(encode(message))
                theirs.close()
                super()._greet(hello)

        await asyncio.get_running_loop().connect_accepted_socket(lambda: LateAnswer(heard), ours)
        theirs.sendall(encode(Hello(PROTOCOL, b"test", b"shim", 1)))
        await asyncio.wait_for(heard.dismissed.wait(), 20)
        return heard.messages

    assert asyncio.run(meet()) == said
