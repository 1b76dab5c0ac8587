"""findreceiver_port: answers to our questions go to the attempt that asked (rqp_cast.md 1.1, 3.1, 3.3)."""

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
from services.kit.metrics import Metrics
from services.kit.net import Acceptor, open_listening
from services.rqp.cast.counts import Counts
from services.rqp.cast.machines.machines import Machines
from services.rqp.cast.ports import wires
from services.rqp.cast.ports.mistaken import NamingReader
from services.rqp.cast.sending.declines import Declines
from services.rqp.cast.settings import CastSettings
from services.rqp.jobs import end, job

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 256  # that have said nothing yet; more are closed
MAX_OF_ADDRESS = 64
BACKLOG = 512
AGAIN_S = 1.0
SETTING = ("edges", "rqp", "cast", "findreceiver_port")
TOO_MANY = "too_many_connections"

Answered = Callable[[Offer], Unheard | None]  # None: it was taken


class FindReceiver:
    """The port of this machine. One process has it, and only that one sends: an answer must come to who asked."""

    def __init__(self, settings: CastSettings, machines: Machines, counts: Counts, metrics: Metrics) -> None:
        self.is_open = asyncio.Event()
        self._asking: defaultdict[int, list[Answered]] = defaultdict(
            list
        )  # by key: whoever waits for an answer
        self._settings = settings
        self._machines = machines
        self._counts = counts
        self._metrics = metrics
        self._acceptor: Acceptor | None = None
        self._is_told = False  # that another process has it
        self._is_warned = False  # that it does not send
        self._opening: asyncio.Task[None] | None = None
        self._readings: set[asyncio.Task[None]] = set()
        self._of_address: Counter[str] = Counter()
        self._declines = Declines(settings, machines)

    def start(self) -> None:
        if not self._try():
            self._opening = job(self._open, "findreceiver_port", self._metrics)

    async def close(self) -> None:
        await end(self._opening)
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        for task in self._readings:
            task.cancel()
        await asyncio.gather(*self._readings, return_exceptions=True)
        await self._declines.close()

    def warn(self, queue: str) -> None:
        """Told once: whoever has the port, it is nobody who sends."""
        if not self._is_warned:
            self._is_warned = True
            port = self._settings.findreceiver_port
            fields = {"action": "findreceiver_taken", "port": port, "queue": queue}
            log.warning(
                "nothing is sent: another program has TCP port %d (findreceiver_port), and no edge sends what is in %r",
                port,
                queue,
                extra=fields,
            )

    async def _open(self) -> None:
        """Another worker of this machine may have it: then it is tried again, for the day that one ends."""
        while not self._try():  # noqa: ASYNC110  nobody tells when another process ends
            await asyncio.sleep(AGAIN_S)

    def _try(self) -> bool:
        try:
            sock = open_listening(self._settings.host, self._settings.findreceiver_port, SETTING, BACKLOG)
        except SettingsError as error:
            if not self._is_told:
                log.info("another process sends: %s", error, extra={"action": "findreceiver_taken"})
                self._is_told = True
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
        """One ACCEPT_SENDER_MSG, and whom it is for."""
        manners = self._machines.manners(address)
        reader = NamingReader(accept_sender_reader(manners.omit_address))
        try:
            with sock:
                async with asyncio.timeout(self._settings.t_wait1_s):
                    message = await wires.message_of(sock, reader)
        except PeerError as error:
            self._counts.fault(error.reason, address, error.detail)
            return
        except OSError:  # broken, or silent for too long
            self._counts.fault("no_message")
            return
        finally:
            self._leave(address)
            self._counts.excess.inc(reader.excess)
        self._answered(Offer.of(message, address, manners.trust_address))

    def _answered(self, offer: Offer) -> None:
        unheard = Unheard.NOT_ASKED
        for answered in self._asking.get(offer.key, ()):
            if (found := answered(offer)) is None:
                return
            if unheard in (Unheard.NOT_ASKED, Unheard.NOT_LISTED):  # others may have asked others
                unheard = found
        self._counts.unheard(unheard.value)
        self.decline(offer)

    @contextlib.contextmanager
    def asking(self, key: int, answered: Answered) -> Iterator[None]:
        """Answers for this key are told meanwhile, until somebody takes them."""
        self._asking[key].append(answered)
        try:
            yield
        finally:
            self._asking[key].remove(answered)
            if not self._asking[key]:
                del self._asking[key]

    def decline(self, offer: Offer) -> None:
        """It is not taken after all."""
        self._declines.decline(offer)

    def _leave(self, address: str) -> None:
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]
