"""endtransmission_port: the confirmation of one attempt comes here (rqp_cast.md 1.2, 3.5, 4.2).

Without tasks: what has come can be read in the step in which the time is up, so that it counts.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from protos.rqp_cast import EndTransmissionMsg, MessageReader, Unheard, end_transmission_reader
from protos.types import PeerError
from services.rqp.cast.counts import Counts
from services.rqp.cast.ports import Port

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
        self._readers: dict[socket.socket, MessageReader[EndTransmissionMsg]] = {}

    def start(self) -> None:
        self._loop.add_reader(self._port.sock, self._accept)

    def close(self) -> None:
        """The port itself is its owner's to close."""
        self._loop.remove_reader(self._port.sock)
        for sock in list(self._readers):
            self._drop(sock)

    def look(self) -> None:
        """Reads what has come by now."""
        self._accept()
        for sock in list(self._readers):
            self._read(sock)

    def _accept(self) -> None:
        while True:
            try:
                sock, place = self._port.sock.accept()
            except BlockingIOError:
                return
            except OSError:  # a connection that broke while it waited
                continue
            if place[0] != self._source:
                sock.close()
                self._counts.unheard(Unheard.FOREIGN_SOURCE.value)
                continue
            if len(self._readers) == MAX_CONNECTIONS:
                self._counts.fault("no_message")
                self._drop(next(iter(self._readers)))
            sock.setblocking(False)
            self._readers[sock] = end_transmission_reader(self._omit_address)
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
            self._counts.fault(error.reason)
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
