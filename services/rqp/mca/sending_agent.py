"""Send the messages of one transmission queue while this process owns it (rqp_mca.md 3).

The state machine `Sender` decides; the agent carries out its actions. Messages are leased ahead of need, settled once
they are delivered, and returned to their places when the ownership ends.
"""

from __future__ import annotations

import asyncio
import logging

from protos.rqp_mca import (
    Action,
    AskAvailability,
    Close,
    Confirm,
    Data,
    Failure,
    Peer,
    Remove,
    ReportFailure,
    RequestQueue,
    SendData,
    Sender,
    State,
    ToDeadLetters,
    encode_available_request,
    encode_message,
    encode_queue_request,
)
from protos.types import PeerError
from services.kit.net import Alarm, Dialler
from services.rqp.condition import Condition
from services.rqp.mca.channel import Channel
from services.rqp.mca.delivery_traces import CONFIRMED, SENT, UNKNOWN, DeliveryTraces
from services.rqp.mca.directory import Directory, Endpoints
from services.rqp.mca.failure_reports import FailureReports
from services.rqp.mca.leased_messages import kind_of
from services.rqp.mca.prefetch import Prefetch
from services.rqp.mca.receiver import PROTOCOL
from services.rqp.service import RqpService
from services.store import INTERNAL_CLIENT, Delivery, Queue, Source

log = logging.getLogger(__name__)

GRACE_S = 0.001  # resolution of the loop's timers; a delay of 0 would run before the next poll for input
NO_RECEIVER = "no_receiver"  # of dead letters (3.1)


class McaSendingAgent:
    """The sending agent of one queue: sends from its creation until `close`."""

    def __init__(
        self,
        service: RqpService,
        directory: Directory,
        dialler: Dialler,
        queue: Queue,
        condition: Condition,
    ) -> None:
        remote = queue.spec.remote
        assert remote is not None  # it is a transmission queue
        self._service = service
        self._settings = settings = service.settings.mca
        self._directory = directory
        self._dialler = dialler
        self._queue = queue
        self._condition = condition
        self._remote = remote
        self._failures = FailureReports(service, remote.number, condition)
        self._machine = Sender(remote.number, settings.sender())
        self._source = Source(INTERNAL_CLIENT)
        self._channels: dict[Peer, Channel] = {}
        self._endpoints: Endpoints = {}
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._loop, self._due)
        self._nothing_out = asyncio.Event()
        self._is_over = False
        self._sent = service.sent.labels(service.metrics.edge, PROTOCOL)
        self._prefetch = Prefetch(service, queue, remote, self)
        self._leased = self._prefetch.leased
        hops = service.store.trace_propagation
        self._traces = None if hops is None else DeliveryTraces(hops, queue, self._leased)
        directory.on_change.add(self._peers_changed)
        self._peers_changed()

    async def close(self, *, lost: bool) -> None:
        """Wait for confirmations of messages in flight, unless the ownership is lost (3.6); give back all others."""
        self._directory.on_change.discard(self._peers_changed)
        await self._prefetch.stop(lost=lost)
        if not lost:
            self._give_back(self._leased.keep(self._machine.unconfirmed))
            self._act(self._machine.withdraw())
            await self._wait_for_confirms()
        self._is_over = True
        self._alarm.cancel()
        for channel in self._channels.values():
            if lost:
                channel.abort()
            else:
                channel.close()
        self._channels.clear()
        if self._traces is not None:
            self._traces.failed(UNKNOWN)
        self._machine.abandon()
        self._give_back(self._leased.keep(0))

    async def _wait_for_confirms(self) -> None:
        """Wait until no message is in flight; the machine's own timeout bounds it."""
        while self._machine.state is State.AWAITING_MESSAGE and self._machine.unconfirmed:
            self._nothing_out.clear()
            await self._nothing_out.wait()

    def _give_back(self, deliveries: list[Delivery]) -> None:
        """Return messages to their places; attempts to send do not count as deliveries (3.1)."""
        if deliveries:
            self._service.pipe(self._queue).messages.give_back(deliveries)

    # callbacks from the prefetch

    def put(self, is_certain: bool, count: int) -> None:
        """Send leased messages: `count` more, all of one kind."""
        self._act(self._machine.put(kind_of(is_certain), count, self._loop.time()))

    def is_blocked(self) -> bool:
        """Return whether a peer does not read what it was sent."""
        return any(channel.is_blocked() for channel in self._channels.values())

    def ahead(self) -> int:
        """Return how many messages to lease: twice the largest window, so that sending never waits for the store."""
        return 2 * max((endpoint.window for endpoint in self._endpoints.values()), default=1)

    def expire(self, before_ms: int) -> None:
        """Give back messages put in at that time or before, except those in flight (3.6)."""
        old = self._leased.take_older(self._machine.unconfirmed, before_ms)
        if old:
            self._act(self._machine.expire(sum(delivery.count for delivery in old)))
            self._give_back(old)
            self._prefetch.has_room()

    # callbacks from the directory, channels and timers

    def _peers_changed(self) -> None:
        self._endpoints = self._directory.endpoints(self._remote.peers)
        windows = {key: endpoint.window for key, endpoint in self._endpoints.items()}
        self._act(self._machine.peers_changed(windows, self._loop.time()))
        self._prefetch.has_room()

    def awaited(self, channel: Channel) -> int:
        """Return how many messages sent on the channel are unconfirmed."""
        return self._machine.unconfirmed if channel.endpoint.key == self._machine.receiver else 0

    def received(self, channel: Channel, confirm: Confirm, awaited: int) -> None:
        """Pass a confirmation to the state machine."""
        self._act(self._machine.received(channel.endpoint.key, confirm, self._loop.time(), awaited))

    def lost(self, channel: Channel, trouble: str | PeerError) -> None:
        """Pass the loss of a connection to the state machine."""
        fields = {"action": "mca_connection_lost", "queue": self._queue.name, "peer": channel.endpoint.key}
        log.debug("connection to the peer lost: %s", trouble, extra=fields)
        key = channel.endpoint.key
        if self._channels.get(key) is channel:
            del self._channels[key]
            failure = Failure.CONNECTION_LOST
            if isinstance(trouble, PeerError):
                failure = Failure.PROTOCOL_ERROR
                self._failures.broke(key, trouble)
            self._act(self._machine.lost(key, self._loop.time(), failure))
            self._prefetch.has_room()  # it may have been the one that did not read

    def has_room(self) -> None:
        """Lease more: a peer reads again."""
        self._prefetch.has_room()

    def _due(self) -> None:
        """Handle a timeout, but read pending input first: the delay may be this process's own."""
        due = self._machine.deadline()
        if due is None:
            return
        now = self._loop.time()
        if now < due:
            self._alarm.set(due, now)
        else:
            self._loop.call_later(GRACE_S, self._on_time)

    def _on_time(self) -> None:
        if not self._is_over:
            self._act(self._machine.on_time(self._loop.time()))

    # the machine's actions

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            self._carry_out(action)
        if (due := self._machine.deadline()) is not None:
            self._alarm.set(due, self._loop.time())
        if not self._machine.unconfirmed or self._machine.state is not State.AWAITING_MESSAGE:
            self._nothing_out.set()

    def _carry_out(self, action: Action) -> None:
        match action:
            case SendData(peer, start, count):
                self._send(peer, start, count)
            case Remove(count):
                self._done(count)
            case AskAvailability(peer):
                self._ask(peer)
            case RequestQueue(peer):
                channel = self._channels[peer]
                channel.write(encode_queue_request(channel.endpoint.profile, self._remote.number))
            case ToDeadLetters(failure):
                self._bury(failure)
            case ReportFailure(failure, _, unconfirmed):
                self._report(failure, unconfirmed)
            case Close(peer):
                if (closed := self._channels.pop(peer, None)) is not None:
                    closed.close()
                    self._prefetch.has_room()

    def _ask(self, peer: Peer) -> None:
        self._failures.asked(peer)
        endpoint = self._endpoints[peer]
        first = encode_available_request(endpoint.profile, self._remote.number)
        limits = self._settings.limits()
        self._channels[peer] = Channel(endpoint, self._dialler, limits, self, first)

    def _send(self, peer: Peer, start: int, count: int) -> None:
        channel = self._channels[peer]
        kind = kind_of(self._leased.is_certain(start))  # the same for the whole run
        run = Data(self._remote.number, kind, self._leased.records(start, count))
        if self._traces is not None:
            self._traces.sent(channel, start, run)
        channel.write(encode_message(channel.endpoint.profile, run))

    def _done(self, count: int) -> None:
        self._sent.inc(count)
        if self._traces is not None:
            self._traces.done(count, CONFIRMED if self._leased.is_certain(0) else SENT)
        deliveries = self._leased.remove(count)
        self._service.pipe(self._queue).messages.settle(self._source, deliveries)
        self._condition.set("")
        self._prefetch.has_room()

    def _bury(self, failure: Failure) -> None:
        deliveries = self._leased.remove(1)
        if self._traces is not None:
            self._traces.given_up(deliveries, failure.value)
        error = self._failures.count(failure, self._endpoints)
        self._service.pipe(self._queue).messages.reject(self._source, deliveries, NO_RECEIVER, error)
        self._prefetch.has_room()

    def _report(self, failure: Failure, unconfirmed: int) -> None:
        if self._traces is not None:
            self._traces.failed(failure.value)
        self._failures.report(failure, unconfirmed, self._endpoints)
