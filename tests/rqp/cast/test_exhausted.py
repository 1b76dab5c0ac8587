"""A system without descriptors for connections to endtransmission_port (rqp_cast.md 1.2, 4.2)."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import threading
from collections.abc import AsyncIterator

import pytest

from protos.rqp_cast import EndTransmissionMsg, Result, encode_end_transmission
from services.kit.metrics.metrics import Metrics
from services.kit.net.acceptor import EXHAUSTED_PAUSE_S
from services.rqp.cast.counts import Counts
from services.rqp.cast.ports.ports import Ports
from services.rqp.cast.sending.confirmations import Confirmations
from services.rqp.cast.settings import CastSettings
from tests.live import PATIENCE_S, Log, until
from tests.rqp.cast.net import HERE, THERE, port_range

CONFIRMED = EndTransmissionMsg(THERE, 99, Result.SUCCESS)


class Exhausted:
    """A port of a process without descriptors; its confirmation has arrived and waits."""

    def __init__(self) -> None:
        self._limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._log = Log()
        logging.getLogger().addHandler(self._log)
        self._ports = Ports(HERE, CastSettings(sender_ports=port_range(2)).sender_range, 60.0)
        port = self._ports.open()
        assert port is not None
        self.heard: list[EndTransmissionMsg] = []
        self.loop_errors: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.loop_errors.append(context))
        counts = Counts(Metrics("rqp"))
        self.confirmations = Confirmations(port, THERE, False, counts, self.heard.append)
        self._port = port
        self.confirmations.start()
        self._sender = socket.socket()
        self._sender.bind((THERE, 0))
        # nothing else would end a blocked loop
        self._watchdog = threading.Timer(PATIENCE_S, self.recover)
        self._watchdog.start()
        with socket.socket() as probe:
            resource.setrlimit(resource.RLIMIT_NOFILE, (probe.fileno(), self._limits[1]))
        self._sender.connect((HERE, port.number))
        self._sender.sendall(encode_end_transmission(CONFIRMED))

    def failures(self) -> list[float]:
        """Return the times at which accepting failed."""
        return [line.created for line in self._log.events("accept_failed")]

    def recover(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)

    def close(self) -> None:
        if self._port.sock.fileno() >= 0:
            self.confirmations.close()
            self._port.close(rests=False)

    def end(self) -> None:
        self._watchdog.cancel()
        self.recover()
        self.close()
        self._sender.close()
        logging.getLogger().removeHandler(self._log)


@pytest.fixture
async def exhausted() -> AsyncIterator[Exhausted]:
    exhausted = Exhausted()
    yield exhausted
    exhausted.end()


async def test_accepting_resumes_after_a_pause(exhausted: Exhausted) -> None:
    """Check that accepting resumes after a pause, and the confirmation counts (4.2).

    Other work continues meanwhile.
    """
    await until(lambda: len(exhausted.failures()) >= 2)
    first, second, *_ = exhausted.failures()
    assert second - first > 0.9 * EXHAUSTED_PAUSE_S
    exhausted.recover()
    await until(lambda: exhausted.heard == [CONFIRMED])


async def test_pending_input_is_read_at_once_at_the_timeout(exhausted: Exhausted) -> None:
    """Check that pending input is read at once when the timeout ends (4.2)."""
    for _ in range(2):
        exhausted.confirmations.read_pending()
    assert exhausted.heard == []
    assert len(exhausted.failures()) == 1, "the port is pausing already"
    exhausted.recover()
    exhausted.confirmations.read_pending()
    assert exhausted.heard == [CONFIRMED]


async def test_closed_port_is_not_accepted_again(exhausted: Exhausted) -> None:
    """Check that a closed port is not accepted again: another user may have it by then (1.2)."""
    exhausted.confirmations.read_pending()
    exhausted.close()
    exhausted.recover()
    rest_over = asyncio.Event()
    asyncio.get_running_loop().call_later(1.5 * EXHAUSTED_PAUSE_S, rest_over.set)
    await rest_over.wait()
    assert exhausted.loop_errors == []
