"""One transmission queue while this process owns it: a sending MCA's machine with its messages and connections.

The machine decides, this carries out (rqp_mca.md 3): messages are leased ahead of need, settled when the machine says
that they are done, and go back to their places when the queue is let go.
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
from services.rqp.mca.departures import CONFIRMED, SENT, UNKNOWN, Departures
from services.rqp.mca.directory import Directory, Endpoints
from services.rqp.mca.feed import Feed
from services.rqp.mca.line import kind_of
from services.rqp.mca.receiver import PROTOCOL
from services.rqp.mca.settings import McaSettings
from services.rqp.mca.troubles import Troubles
from services.rqp.service import RqpService
from services.store import INTERNAL_CLIENT, Delivery, Queue, Source

log = logging.getLogger(__name__)

GRACE_S = 0.001  # the loop counts in milliseconds; a delay of 0 would run before the next poll for input
NO_RECEIVER = "no_receiver"  # of dead letters (3.1)


class Carrier:
    """Sends as soon as it is made. `close` is its end."""

    def __init__(
        self,
        service: RqpService,
        settings: McaSettings,
        directory: Directory,
        dialler: Dialler,
        queue: Queue,
        condition: Condition,
    ) -> None:
        remote = queue.spec.remote
        assert remote is not None  # else it were no transmission queue
        self._service = service
        self._settings = settings
        self._directory = directory
        self._dialler = dialler
        self._queue = queue
        self._condition = condition
        self._remote = remote
        self._troubles = Troubles(service, remote.number, condition)
        self._machine = Sender(remote.number, settings.times())
        self._source = Source(INTERNAL_CLIENT)
        self._channels: dict[Peer, Channel] = {}
        self._endpoints: Endpoints = {}
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._loop, self._due)
        self._nothing_out = asyncio.Event()
        self._is_over = False
        self._sent = service.sent.labels(service.metrics.edge, PROTOCOL)
        self._feed = Feed(service, queue, remote, self)
        self._departures = Departures.of(service.store.trace_propagation, queue, self._feed.line)
        directory.follow(self._peers_changed)
        self._peers_changed()

    # the end

    async def close(self, *, lost: bool) -> None:
        """What is out may still be confirmed, unless the queue is somebody else's (3.6). All else goes back."""
        self._directory.follow_no_more(self._peers_changed)
        await self._feed.stop(lost=lost)
        if not lost:
            self._give_back(self._feed.line.keep(self._machine.unconfirmed))
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
        if self._departures is not None:
            self._departures.failed(UNKNOWN)
        self._machine.abandon()
        self._give_back(self._feed.line.keep(0))

    async def _wait_for_confirms(self) -> None:
        """Until nothing is out any more: confirmed, or it failed. The machine's own time-out bounds it."""
        while self._machine.state is State.AWAITING_MESSAGE and self._machine.unconfirmed:
            self._nothing_out.clear()
            await self._nothing_out.wait()

    def _give_back(self, deliveries: list[Delivery]) -> None:
        """To their old places; a sending agent's attempts are no deliveries (3.1)."""
        if deliveries:
            self._service.pipe(self._queue).messages.give_back(deliveries)

    # messages

    def put(self, is_certain: bool, count: int) -> None:
        self._act(self._machine.put(kind_of(is_certain), count, self._loop.time()))

    def is_blocked(self) -> bool:
        return any(channel.is_blocked() for channel in self._channels.values())

    def ahead(self) -> int:
        """How many messages to have at hand: twice what may be out, so that the store is not waited for."""
        return 2 * max((endpoint.window for endpoint in self._endpoints.values()), default=1)

    def expire(self, before_ms: int) -> None:
        """What is out may still be confirmed, and stays (3.6)."""
        old = self._feed.line.take_older(self._machine.unconfirmed, before_ms)
        if old:
            self._act(self._machine.expire(sum(delivery.count for delivery in old)))
            self._give_back(old)
            self._feed.has_room()

    # what happens

    def _peers_changed(self) -> None:
        self._endpoints = self._directory.endpoints(self._remote.peers)
        windows = {key: endpoint.window for key, endpoint in self._endpoints.items()}
        self._act(self._machine.peers_changed(windows, self._loop.time()))
        self._feed.has_room()

    def awaited(self, channel: Channel) -> int:
        return self._machine.unconfirmed if channel.endpoint.key == self._machine.receiver else 0

    def received(self, channel: Channel, confirm: Confirm, awaited: int) -> None:
        self._act(self._machine.received(channel.endpoint.key, confirm, self._loop.time(), awaited))

    def lost(self, channel: Channel, trouble: str | PeerError) -> None:
        fields = {"action": "mca_connection_lost", "queue": self._queue.name, "peer": channel.endpoint.key}
        log.debug("no connection any more: %s", trouble, extra=fields)
        key = channel.endpoint.key
        if self._channels.get(key) is channel:
            del self._channels[key]
            failure = Failure.CONNECTION_LOST
            if isinstance(trouble, PeerError):
                failure = Failure.PROTOCOL_ERROR
                self._troubles.broke(key, trouble)
            self._act(self._machine.lost(key, self._loop.time(), failure))
            self._feed.has_room()  # it may have been the one that did not read

    def has_room(self) -> None:
        self._feed.has_room()

    def _due(self) -> None:
        """What has come meanwhile is read first: perhaps not the peer was late but our loop."""
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

    # what is to be done

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
                    self._feed.has_room()

    def _ask(self, peer: Peer) -> None:
        self._troubles.asked(peer)
        endpoint = self._endpoints[peer]
        first = encode_available_request(endpoint.profile, self._remote.number)
        limits = self._settings.limits()
        self._channels[peer] = Channel(endpoint, self._dialler, limits, self, first)

    def _send(self, peer: Peer, start: int, count: int) -> None:
        channel = self._channels[peer]
        line = self._feed.line
        kind = kind_of(line.is_certain(start))  # of all that are sent together
        run = Data(self._remote.number, kind, line.records(start, count))
        if self._departures is not None:
            self._departures.sent(channel, start, run)
        channel.write(encode_message(channel.endpoint.profile, run))

    def _done(self, count: int) -> None:
        self._sent.inc(count)
        if self._departures is not None:
            self._departures.done(count, CONFIRMED if self._feed.line.is_certain(0) else SENT)
        deliveries = self._feed.line.remove(count)
        self._service.pipe(self._queue).messages.settle(self._source, deliveries)
        self._condition.say("")
        self._feed.has_room()

    def _bury(self, failure: Failure) -> None:
        deliveries = self._feed.line.remove(1)
        if self._departures is not None:
            self._departures.given_up(deliveries, failure.value)
        error = self._troubles.bury(failure, self._endpoints)
        self._service.pipe(self._queue).messages.reject(self._source, deliveries, NO_RECEIVER, error)
        self._feed.has_room()

    def _report(self, failure: Failure, unconfirmed: int) -> None:
        if self._departures is not None:
            self._departures.failed(failure.value)
        self._troubles.report(failure, unconfirmed, self._endpoints)
