"""endtransmission_port: the confirmation of one attempt comes here (rqp_cast.md 1.2, 3.5, 4.2).

Without tasks: what has come can be read in the step in which the time is up, so that it counts.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from protos.rqp_cast import EndTransmissionMsg, Unheard, end_transmission_reader
from protos.types import PeerError
from services.kit.net import ACCEPT_BATCH, EXHAUSTED_ERRNOS, EXHAUSTED_PAUSE_S
from services.rqp.cast.counts import Counts
from services.rqp.cast.ports.mistaken import NamingReader
from services.rqp.cast.ports.ports import Port

log = logging.getLogger(__name__)

READ_BYTES = 1024
MAX_CONNECTIONS = 8  # that have not said anything yet; for one more the oldest is closed

Ended = Callable[[EndTransmissionMsg], None]


class Confirmations:
    """Listens from `start` until `close`. Wrong messages are closed and counted, and the listening goes on."""

    def __init__(self, port: Port, source: str, omit_address: bool, counts: Counts, ended: Ended) -> None:
        """source: of the receiver; nobody else is heard."""
        self._loop = asyncio.get_running_loop()
        self._port = port
        self._source = source
        self._omit_address = omit_address
        self._counts = counts
        self._ended = ended
        self._readers: dict[socket.socket, NamingReader[EndTransmissionMsg]] = {}
        self._rest: asyncio.TimerHandle | None = None  # the system has nothing left for one more connection

    def start(self) -> None:
        self._rest = None
        self._loop.add_reader(self._port.sock, self._accept)

    def close(self) -> None:
        """The port itself is its owner's to close."""
        if self._rest is not None:
            self._rest.cancel()
        self._loop.remove_reader(self._port.sock)
        for sock in list(self._readers):
            self._drop(sock)

    def look(self) -> None:
        """Reads what has come by now, as far as the system has room for it."""
        self._accept()
        for sock in list(self._readers):
            self._read(sock)

    def _accept(self) -> None:
        """A batch holds all that the port's backlog does."""
        for _ in range(ACCEPT_BATCH):
            try:
                sock, place = self._port.sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in EXHAUSTED_ERRNOS:
                    self._exhausted(error)
                    return
                continue  # a connection that broke while it waited
            self._accepted(sock, place[0])

    def _exhausted(self, error: OSError) -> None:
        """As the kit's acceptor: trying again at once would only burn the processor, and the loop would stand still."""
        if self._rest is None:
            log.error("cannot accept: %s", error.strerror, extra={"action": "accept_failed"})
            self._loop.remove_reader(self._port.sock)
            self._rest = self._loop.call_later(EXHAUSTED_PAUSE_S, self.start)

    def _accepted(self, sock: socket.socket, source: str) -> None:
        if source != self._source:
            sock.close()
            self._counts.unheard(Unheard.FOREIGN_SOURCE.value)
            return
        if len(self._readers) == MAX_CONNECTIONS:
            self._counts.fault("no_message")
            self._drop(next(iter(self._readers)))
        sock.setblocking(False)
        self._readers[sock] = NamingReader(end_transmission_reader(self._omit_address))
        self._loop.add_reader(sock, self._read, sock)
        self._read(sock)

    def _read(self, sock: socket.socket) -> None:
        reader = self._readers.get(sock)
        if reader is None:
            return
        try:
            data = sock.recv(READ_BYTES)
            if not data:
                reader.receive_eof()
            message = reader.receive(data)
        except BlockingIOError:
            return
        except PeerError as error:
            self._counts.fault(error.reason, self._source, error.detail)
        except OSError:
            self._counts.fault("no_message")
        else:
            if message is None and data:
                return
            self._counts.excess.inc(reader.excess)
            if message is not None:
                self._drop(sock)
                self._ended(message)
                return
        self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        if self._readers.pop(sock, None) is not None:
            self._loop.remove_reader(sock)
            sock.close()
