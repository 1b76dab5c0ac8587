"""Send QUESTION_MSGs to machines over UDP (rqp_cast.md 1.1, 3.1)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Iterable

from protos.rqp_cast import Host, QuestionMsg, encode_question
from services.kit.config import SettingsError
from services.rqp.cast.machines.broadcast_addresses import DISCARD_PORT
from services.rqp.cast.machines.machines import Machines
from services.rqp.cast.ports.connections import ANY
from services.rqp.cast.settings import CastSettings

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
ANYWHERE = "192.0.2.1"  # belongs to no machine (RFC 5737)

AskedAddresses = set[tuple[str, int]]  # addresses and request_ports


class QuestionSender:
    """Sends questions; names are resolved in the background, so that a slow one delays no other machine."""

    def __init__(self, settings: CastSettings, machines: Machines) -> None:
        """Raise SettingsError if this machine does not have the address to send from."""
        self._settings = settings
        self._machines = machines
        self._sock = _bound(settings.host)
        self._lookups: set[asyncio.Task[None]] = set()

    def has_address(self) -> bool:
        """Return whether this machine has the address to send from now: an address may be removed and added."""
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind((self._settings.host, 0))
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
        return True

    def address(self) -> str:
        """Return the stable address of this agent: from the settings, else the one datagrams leave from (2.2, 2.3)."""
        if self._settings.address:
            return self._settings.address
        known = [address for host in self._machines.to_ask() for address in self._machines.known(host)]
        for address in (*known[:1], ANYWHERE):
            with contextlib.suppress(OSError):
                return self._local_address(address)
        return LOOPBACK  # there is no network

    def ask(self, key: int, peers: Iterable[str], only: str | None) -> AskedAddresses:
        """Ask all machines of these groups, or all known ones; `only` this receiver if it is among them (3.1).

        The returned set grows as names are resolved.
        """
        hosts = self._machines.to_ask(peers)
        bound = [host for host in hosts if only in self._machines.known(host)]
        asked: AskedAddresses = set()
        for host in bound or hosts:
            known = self._machines.known(host)
            wanted = (only,) if bound and only is not None else known
            self._send(key, wanted, host, asked)
            if not bound:
                self._look_up(key, host, asked)
        return asked

    async def close(self) -> None:
        """Cancel all lookups and close the socket."""
        for task in self._lookups:
            task.cancel()
        await asyncio.gather(*self._lookups, return_exceptions=True)
        self._sock.close()

    def _look_up(self, key: int, host: Host, asked: AskedAddresses) -> None:
        """Resolve a name in the background, and ask addresses that are new."""
        if host.name in self._machines.known(host):
            return
        task = asyncio.create_task(self._ask_found(key, host, asked))
        self._lookups.add(task)
        task.add_done_callback(self._lookups.discard)

    async def _ask_found(self, key: int, host: Host, asked: AskedAddresses) -> None:
        self._send(key, await self._machines.addresses(host), host, asked)

    def _send(self, key: int, addresses: Iterable[str], host: Host, asked: AskedAddresses) -> None:
        for address in addresses:
            place = (address, host.request_port)
            if place not in asked:
                asked.add(place)
                self._send_to(key, place)

    def _send_to(self, key: int, place: tuple[str, int]) -> None:
        try:
            question = QuestionMsg(self._settings.address or self._local_address(place[0]), key)
            self._sock.sendto(encode_question(question), place)
        except OSError as error:  # no route or no buffer: as if the datagram had been lost
            fields = {"action": "question_unsent", "peer": place[0]}
            log.debug("question not sent: %s", error, extra=fields)

    def _local_address(self, address: str) -> str:
        """Return the address that a datagram to `address` leaves from. Raises OSError."""
        if self._settings.host != ANY:
            return self._settings.host
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((address, DISCARD_PORT))
            return str(probe.getsockname()[0])


def _bound(host: str) -> socket.socket:
    """Return a UDP socket. Raises SettingsError if this machine does not have the address."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.bind((host, 0))
    except OSError as error:
        sock.close()
        raise SettingsError([f"cannot send questions from {host}: {error.strerror}"]) from None
    return sock
