"""Continuous traffic through every edge from a thread: some messages pass, some are refused."""

from __future__ import annotations

import contextlib
import importlib.util
import threading
from collections.abc import Callable
from typing import Any

import sysv_ipc

from protos import rqp_mca, tmq
from tests.chart.chart import CHART
from tests.cli.shell import Up
from tests.sysv.local import existing

ORDERS, FULL, ONWARD = "orders", "full", "onward"
NUMBER, OTHER_NUMBER = 7, 9  # over RQP, of ORDERS, and of the queue that receives messages from ONWARD
UNKNOWN_NUMBER = 99
PAUSE_S = 0.3
Place = tuple[str, int]


def _script() -> Any:
    """Return the script of `helm test`, which speaks every protocol; its queues exist already."""
    spec = importlib.util.spec_from_file_location(
        "exchange_of_monitoring", CHART / "files/scripts/exchange.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.queue = lambda *_: contextlib.nullcontext()  # type: ignore[attr-defined]
    return module


class Traffic:
    """`start`, and `end`, which raises unexpected errors. While `is_calm`, errors are ignored."""

    def __init__(self, up: Up, key: int) -> None:
        """key: of a local queue that the System V bridge empties."""
        self._script = _script()
        self._up = up
        self._key = key
        self.is_calm = True
        self._faults: list[Exception] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        assert not self._faults, self._faults

    def _go_on(self) -> None:
        while not self._ended.wait(PAUSE_S):
            for work in (
                self._tmq,
                self._onward,
                self._full,
                self._nonsense,
                self._text,
                self._ring,
                self._rqp,
                self._local,
            ):
                try:
                    work()
                except (OSError, self._script.Failed, ValueError, sysv_ipc.Error) as error:
                    if self.is_calm:
                        self._faults.append(error)

    def place(self, edge: str, listener: str) -> Place:
        found = self._up.announcement["edges"][edge]["listeners"][listener]
        return found["host"], found["port"]

    def _line(self, edge: str, listener: str) -> Any:
        host, port = self.place(edge, listener)
        return self._script.Connection(f"tcp://{host}:{port}")

    def _once(self, edge: str, listener: str, speak: Callable[[Any], object]) -> None:
        with contextlib.closing(self._line(edge, listener)) as line:
            speak(line)

    def _tmq(self) -> None:
        self._once("tmq", "document", lambda line: self._script.through_tmq(line, ORDERS))

    def _onward(self) -> None:
        """Put a message into a queue that sends over RQP."""
        enq = tmq.Operation.ENQ

        def speak(line: Any) -> None:
            mqid = tmq.parse_mqid(line.ask(tmq.encode_open(ONWARD.encode()), tmq.MQID_BYTES))
            if mqid is None:
                raise self._script.Failed("OPEN failed")
            request = tmq.encode_enq(mqid, self._script.BODY)
            line.ask(request, tmq.reply_bytes(tmq.Dialect.DOCUMENT, enq))

        self._once("tmq", "document", speak)

    def _full(self) -> None:
        with contextlib.suppress(self._script.Failed):
            self._once("tmq", "document", lambda line: self._script.through_tmq(line, FULL))
            self._once("tmq", "document", lambda line: self._script.through_tmq(line, "unwatched"))

    def _nonsense(self) -> None:
        self._once("tmq", "document", lambda line: line.send(b"\xff" * 16))
        self._once("pubsub", "text", lambda line: (line.send(b"NONSENSE\n"), line.read_line()))

    def _text(self) -> None:
        self._once("pubsub", "text", lambda line: self._script.through_pubsub(line, "news"))

    def _ring(self) -> None:
        self._once("ring", "clients", lambda line: self._script.through_ring(line, ORDERS))

    def _rqp(self) -> None:
        profile, reliable = rqp_mca.Profile.PACKED, rqp_mca.MessageType.RELIABLE
        confirm = rqp_mca.encode_data_confirm(profile)

        def speak(line: Any) -> None:
            line.ask(rqp_mca.encode_data(profile, NUMBER, reliable, self._script.BODY), len(confirm))

        self._once("rqp", "mca", speak)

    def lose(self) -> None:
        """Send an UNRELIABLE message for a missing queue."""
        unreliable = rqp_mca.encode_data(
            rqp_mca.Profile.PACKED, UNKNOWN_NUMBER, rqp_mca.MessageType.UNRELIABLE, self._script.BODY
        )
        self._once("rqp", "mca", lambda line: line.send(unreliable))

    def _local(self) -> None:
        with contextlib.suppress(sysv_ipc.BusyError):
            existing(self._key).send(b"local", block=False)
