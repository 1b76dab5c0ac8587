"""Receive answers on findreceiver_port and pass each to the attempt that asked (rqp_cast.md 1.1, 3.1, 3.3)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from protos.rqp_cast import Offer, Unheard, accept_sender_reader
from protos.types import PeerError
from services.kit.config import SettingsError
from services.kit.net import Acceptor, open_listening
from services.rqp.cast.counts import Counts
from services.rqp.cast.machines.machines import Machines
from services.rqp.cast.ports import connections
from services.rqp.cast.ports.wrong_protocol import DiagnosingReader
from services.rqp.cast.sending.declines import Declines
from services.rqp.jobs import start_job, stop_job
from services.rqp.service import RqpService

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 256  # without a message yet; further ones are closed
MAX_OF_ADDRESS = 64
BACKLOG = 512
AGAIN_S = 1.0
SETTING = ("edges", "rqp", "cast", "findreceiver_port")
TOO_MANY = "too_many_connections"

Answered = Callable[[Offer], Unheard | None]  # None: it was taken


class FindReceiver:
    """The port of this machine. Only the process that has it sends, as all answers come to it."""

    def __init__(self, service: RqpService, machines: Machines, counts: Counts) -> None:
        self.is_open = asyncio.Event()
        self._asking: defaultdict[int, list[Answered]] = defaultdict(list)  # attempts that wait, by key
        self._settings = service.settings.cast
        self._machines = machines
        self._counts = counts
        self._metrics = service.metrics
        self._acceptor: Acceptor | None = None
        self._is_logged = False  # that another process has the port
        self._is_warned = False  # that nothing is sent
        self._opening: asyncio.Task[None] | None = None
        self._readings: set[asyncio.Task[None]] = set()
        self._of_address: Counter[str] = Counter()
        self._declines = Declines(self._settings, machines)

    def start(self) -> None:
        """Open the port, now or once another process closes it."""
        if not self._try():
            self._opening = start_job(self._open, "findreceiver_port", self._metrics)

    async def close(self) -> None:
        """Close the port and all its connections."""
        await stop_job(self._opening)
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        for task in self._readings:
            task.cancel()
        await asyncio.gather(*self._readings, return_exceptions=True)
        await self._declines.close()

    def warn(self, queue: str) -> None:
        """Log once that the port is taken, but no edge sends this queue."""
        if not self._is_warned:
            self._is_warned = True
            port = self._settings.findreceiver_port
            fields = {"action": "findreceiver_taken", "port": port, "queue": queue}
            text = (
                "messages of %r are not sent: another program uses TCP port %d (findreceiver_port), and it is no edge "
                "of this store; stop it or change the port on all machines"
            )
            log.warning(text, queue, port, extra=fields)

    async def _open(self) -> None:
        """Retry until the process that has the port ends."""
        while not self._try():  # noqa: ASYNC110  there is no notification
            await asyncio.sleep(AGAIN_S)

    def _try(self) -> bool:
        try:
            sock = open_listening(self._settings.host, self._settings.findreceiver_port, SETTING, BACKLOG)
        except SettingsError as error:
            if not self._is_logged:
                text = "another process has findreceiver_port; this one sends once it is free: %s"
                log.info(text, error, extra={"action": "findreceiver_taken"})
                self._is_logged = True
            return False
        self._acceptor = Acceptor(sock, self._accepted)
        host, port = self._acceptor.address
        fields = {"action": "listening", "listener": "findreceiver", "host": host, "port": port}
        log.info("listening on %s port %d", host, port, extra={**fields, "setting": SETTING})
        self.is_open.set()
        return True

    def _accepted(self, sock: socket.socket, address: str, _port: int) -> None:
        sock.setblocking(False)
        reason = self._refusal(address)
        if reason is not None:
            self._counts.unheard(reason)
            sock.close()
            return
        self._of_address[address] += 1
        task = asyncio.create_task(self._read(sock, address))
        self._readings.add(task)
        task.add_done_callback(self._readings.discard)

    def _refusal(self, address: str) -> str | None:
        if not self._machines.is_listed(address):
            return Unheard.NOT_LISTED.value
        if len(self._readings) >= MAX_CONNECTIONS or self._of_address[address] >= MAX_OF_ADDRESS:
            return TOO_MANY
        return None

    async def _read(self, sock: socket.socket, address: str) -> None:
        """Read one ACCEPT_SENDER_MSG and pass it on."""
        options = self._machines.options(address)
        reader = DiagnosingReader(accept_sender_reader(options.omit_address))
        try:
            with sock:
                async with asyncio.timeout(self._settings.t_wait1_s):
                    message = await connections.message_of(sock, reader)
        except PeerError as error:
            self._counts.fault(error.reason, address, error.detail)
            return
        except OSError:  # broken, or silent for too long
            self._counts.fault("no_message")
            return
        finally:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]
            self._counts.excess.inc(reader.excess)
        self._answered(Offer.of(message, address, options.trust_address))

    def _answered(self, offer: Offer) -> None:
        unheard = Unheard.NOT_ASKED
        for answered in self._asking.get(offer.key, ()):
            if (found := answered(offer)) is None:
                return
            # another attempt may have asked this machine
            if unheard in (Unheard.NOT_ASKED, Unheard.NOT_LISTED):
                unheard = found
        self._counts.unheard(unheard.value)
        self.decline(offer)

    @contextlib.contextmanager
    def asking(self, key: int, answered: Answered) -> Iterator[None]:
        """Pass answers for this key to `answered` meanwhile, unless an earlier attempt takes them."""
        self._asking[key].append(answered)
        try:
            yield
        finally:
            self._asking[key].remove(answered)
            if not self._asking[key]:
                del self._asking[key]

    def decline(self, offer: Offer) -> None:
        """Decline an answer that is not taken."""
        self._declines.decline(offer)
