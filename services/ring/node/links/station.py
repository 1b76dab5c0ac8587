"""Connect `protos.ring.Node` to its sockets: report events to it and carry out its actions (ring.md 2 to 4)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from itertools import count
from typing import assert_never

from protos.ring import (
    CloseInbound,
    CloseOutbound,
    Dial,
    Limits,
    Loop,
    Node,
    SendBeacon,
    TailState,
    host_of,
)
from services.kit.net import Dialler
from services.kit.session import Session, Wire
from services.ring import measures
from services.ring.node.break_labels import reason_of
from services.ring.node.discovery.beacon_handler import BeaconHandler
from services.ring.node.discovery.beacons import Beacons
from services.ring.node.discovery.targets import Target
from services.ring.node.discovery.unreachable import Unreachable
from services.ring.node.links.dialling import Dialling
from services.ring.node.links.inbound import Inbound
from services.ring.node.links.outbound import Outbound, Sending
from services.ring.node.node_metrics import NodeMetrics
from services.ring.node.outgoing.user_flow import UserSink, UserSource
from services.ring.node.settings import NodeSettings
from services.ring.node.timer import Timer

log = logging.getLogger(__name__)

MEMBER_S = 650.0  # every node of a ring is heard of within this time (4.6)
ANSWERED_S = 0.01  # between checks of the drain whether everything is answered


class Station:
    """One node with its sockets.

    Create it in the event loop that it runs in; nothing happens before `start` and `store_back`. service: as in its
    OPENs.
    """

    def __init__(
        self,
        node: Node,
        service: bytes,
        settings: NodeSettings,
        limits: Limits,
        metrics: NodeMetrics,
        dialler: Dialler,
        user_sink: UserSink,
        user_source: UserSource,
    ) -> None:
        self.node = node
        self.user_sink = user_sink
        self.ack_s = settings.times.ack_s
        self._loop = asyncio.get_running_loop()
        self.beacon_handler = BeaconHandler(node, service, self.now, self._met, self._act)
        self.beacons = Beacons(
            settings,
            host_of(node.name).decode(),
            metrics,
            self.beacon_handler.heard,
            self.beacon_handler.echoes.sent,
        )
        self._settings = settings
        self._limits = limits
        self._metrics = metrics
        self._sending = Sending(node, metrics, user_source, self.now, self._act)
        self._timer = Timer(self._loop, node, self._act)
        self._links = count(1)
        self._inbound: dict[int, Inbound] = {}
        self._dialing = Dialling(dialler, settings, metrics, self._reached, self._unreached)
        self._unreachable = Unreachable(node, settings.times.alone_s)
        self._breaks = 0  # those already logged
        self._is_acting = False

    def start(self) -> None:
        """Open the beacon sockets. Raises SettingsError if a beacon address cannot be bound."""
        self.beacons.open()

    async def stop_taking(self) -> None:
        """Take and send nothing new, wait for answers under way, then close both links with a FIN."""
        self.beacon_handler.is_stopping = True
        self._dialing.give_up()
        if self.outbound is not None:
            self.outbound.finish()  # first: a LinkBroken of a node that has left would go around 255 times
        for session in list(self._inbound.values()):
            session.drain()
        end = self.now() + self.ack_s
        while not self._is_answered() and self.now() < end:  # noqa: ASYNC110  answers come one by one
            await asyncio.sleep(ANSWERED_S)
        self._leave("this node is stopping")

    async def close(self) -> None:
        """Close all links and sockets."""
        self.beacon_handler.is_stopping = True
        self._leave("this node is stopping")
        self._timer.cancel()
        self.beacons.close()
        await self._dialing.close()
        self._metrics.publish()

    def now(self) -> float:
        """Return the loop time in seconds."""
        return self._loop.time()

    def tick(self) -> None:
        """Update the metrics and check timers; called periodically."""
        node, metrics = self.node, self._metrics
        metrics.publish()
        metrics.leader.set(node.election.is_leader)
        metrics.led.set(node.is_led(self.now()))
        metrics.predecessor.set(self.predecessor is not None)
        metrics.successor.set(self.successor is not None)
        now = self.now()
        metrics.members.set(sum(now - heard < MEMBER_S for heard in node.members.values()))
        self.beacons.tick(now)
        self.beacon_handler.echoes.tick()
        self._unreachable.tick(now)
        self._timer.check()

    def follow(self, addresses: Iterable[str]) -> None:
        """Send beacons to these ring peers, too (3.4); new ones get one at once."""
        self._announce(self.beacons.sender.follow(addresses))

    def _met(self, address: str) -> None:
        """Reply to another node's beacon: that node may list us and not be listed here (3.4)."""
        self._announce(self.beacons.sender.met(address))

    def _announce(self, fresh: tuple[Target, ...]) -> None:
        announcement = self.node.announcement()
        if fresh and announcement is not None and not self.beacon_handler.is_stopping:
            self.beacons.sender.send_to(fresh, announcement)

    # the store (4.7)

    def store_back(self) -> None:
        """Take part in the ring again (4.7)."""
        if self.node.is_away and not self.beacon_handler.is_stopping:
            log.info("the node takes part in its ring", extra={"action": "ring_node_there"})
            self.node.store_back(self.now())
            self._act()

    def store_away(self, why: str) -> None:
        """Leave the ring until the store is back (4.7)."""
        if not self.node.is_away:
            log.warning("the node leaves its ring: %s", why, extra={"action": "ring_node_away"})
            self._leave(why)

    @property
    def predecessor(self) -> Inbound | None:
        """The link to the predecessor, if there is one."""
        if self.node.tail.state is not TailState.LINKED or self.node.tail.link is None:
            return None
        return self._inbound.get(self.node.tail.link)

    @property
    def outbound(self) -> Outbound | None:
        """The connection from the head, which may not be a link yet."""
        return self._sending.outbound

    @property
    def successor(self) -> Outbound | None:
        """The link to the successor, if there is one."""
        return self._sending.successor

    # connections to the tail

    def session(self, wire: Wire) -> Session:
        """Accept a connection on the listener `ring`."""
        session = Inbound(self, next(self._links), wire, self._limits)
        self._inbound[session.link] = session
        self.node.accepted(session.link, self.now())
        self._act()
        return session

    def heard(self, link: int) -> bool:
        """Report a message on a connection to the node; return False if it wants none from it."""
        is_new = self.node.tail.state is not TailState.LINKED
        is_wanted = self.node.heard(link, self.now())
        if is_new:
            self._act()
        return is_wanted

    def count_received(self, kind: str) -> None:
        """Count a message from the predecessor: USER or LOOP."""
        self._metrics.received[kind] += 1

    def received(self, message: Loop) -> None:
        """Pass a LOOP of the predecessor to the node."""
        self.node.received(message, self.now())
        self._act()

    def inbound_lost(self, session: Inbound, why: str) -> None:
        """Report the end of a connection to the node."""
        self._inbound.pop(session.link, None)
        self.node.inbound_lost(session.link, why, self.now())
        self._act()

    # what the node wants

    def _act(self) -> None:
        """Carry out the node's actions and those that follow, send what waits, and set the timer."""
        if self._is_acting:
            return
        self._is_acting = True
        try:
            while actions := self.node.take_actions():
                for action in actions:
                    self._do(action)
        finally:
            self._is_acting = False
        self._sending.proceed()
        if self.node.breaks != self._breaks:
            self._log_break()
        self._timer.set()

    def _do(self, action: SendBeacon | Dial | CloseOutbound | CloseInbound) -> None:
        match action:
            case SendBeacon(beacon):
                if not self.beacon_handler.is_stopping:
                    self.beacons.sender.send(beacon)
            case Dial():
                self._dial(action)
            case CloseOutbound():
                self._dialing.give_up()
                self._sending.end()
            case CloseInbound(link, why):
                if (inbound := self._inbound.get(link)) is not None:
                    inbound.close(why)
            case _:
                assert_never(action)

    def _log_break(self) -> None:
        last, number = self.node.last_break, self.node.breaks - self._breaks
        self._breaks = self.node.breaks
        assert last is not None
        self._metrics.count(measures.BREAKS, last.side, reason_of(last.side, last.why), number=number)
        fields = {"action": "ring_link_broken", "side": last.side, "detail": last.why}
        log.info("%s link of the ring broke: %s", last.side, last.why, extra=fields)

    # dialling

    def _dial(self, where: Dial) -> None:
        if self.beacon_handler.is_stopping:
            self.node.connect_failed(self.now())
        else:
            self._dialing.dial(where)

    def _reached(self, wire: Wire) -> Session:
        if (node := self.node.head.successor) is not None:
            self._unreachable.reached(node)
        session = Outbound(self._sending, wire, self._settings.window, self.ack_s)
        self._sending.begin(session)
        return session

    def _unreached(self) -> None:
        if (node := self.node.head.successor) is not None:
            self._unreachable.failed(node)
        self.node.connect_failed(self.now())
        self._act()

    # the end

    def _is_answered(self) -> bool:
        outbound = self.outbound
        return (outbound is None or outbound.is_answered) and all(
            session.is_answered for session in self._inbound.values()
        )

    def _leave(self, why: str) -> None:
        self.node.store_away(why, self.now())
        self._act()
