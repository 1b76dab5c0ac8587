"""A node with its sockets: what happens is told to `protos.ring.Node`, and what that wants is done (ring.md 2 to 4)."""

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
from services.ring.node.discovery.beacons import Beacons
from services.ring.node.discovery.hearing import Hearing
from services.ring.node.discovery.targets import Target
from services.ring.node.discovery.unreachable import Unreachable
from services.ring.node.figures import LOOP, USER, Figures
from services.ring.node.links.dialling import Dialling
from services.ring.node.links.inbound import Inbound
from services.ring.node.links.outbound import Outbound
from services.ring.node.links.sending import Sending
from services.ring.node.outgoing.passage import Arrivals, Departures
from services.ring.node.settings import NodeSettings
from services.ring.node.timing import Timing

log = logging.getLogger(__name__)

MEMBER_S = 650.0  # a node of a ring is heard of at least so often, as its leader's proposals come by (4.6)
ANSWERED_S = 0.01  # how often the drain looks whether everything is answered


class Station:
    """One node. Made in the loop that it works in; nothing happens before `start` and `store_back`.

    service: as its OPENs tell it.
    """

    def __init__(
        self,
        node: Node,
        service: bytes,
        settings: NodeSettings,
        limits: Limits,
        figures: Figures,
        dialler: Dialler,
        arrivals: Arrivals,
        departures: Departures,
    ) -> None:
        self.node = node
        self.arrivals = arrivals
        self.ack_s = settings.times.ack_s
        self._loop = asyncio.get_running_loop()
        self.hearing = Hearing(node, service, self.now, self._met, self._act)
        self.beacons = Beacons(
            settings, host_of(node.name).decode(), figures, self.hearing.heard, self.hearing.echoes.sent
        )
        self._settings = settings
        self._limits = limits
        self._figures = figures
        self._sending = Sending(node, figures, departures, self.now, self._act)
        self._timing = Timing(self._loop, node, self._act)
        self._links = count(1)
        self._inbound: dict[int, Inbound] = {}
        self._dialling = Dialling(dialler, settings, figures, self._reached, self._unreached)
        self._unreachable = Unreachable(node, settings.times.alone_s)
        self._breaks = 0  # as they were told
        self._is_acting = False

    # life

    def start(self) -> None:
        """Raises SettingsError if beacons cannot be heard."""
        self.beacons.open()

    async def stop_taking(self) -> None:
        """Nothing new is taken of the predecessor or sent to the successor; then both are told by FIN."""
        self.hearing.is_stopping = True
        self._dialling.give_up()
        if self.outbound is not None:
            self.outbound.finish()  # first: a LinkBroken of a node that is gone would go round 255 times
        for session in list(self._inbound.values()):
            session.finish()
        end = self.now() + self.ack_s
        while not self._is_answered() and self.now() < end:  # noqa: ASYNC110  answers come one by one
            await asyncio.sleep(ANSWERED_S)
        self._leave("this node is stopping")

    async def close(self) -> None:
        self.hearing.is_stopping = True
        self._leave("this node is stopping")
        self._timing.cancel()
        self.beacons.close()
        await self._dialling.close()
        self._figures.publish()

    def now(self) -> float:
        return self._loop.time()

    def tick(self) -> None:
        """Now and then: metrics, and a timer that was lost in a fault of ours."""
        node, figures = self.node, self._figures
        figures.publish()
        figures.leader.set(node.election.is_leader)
        figures.led.set(node.is_led(self.now()))
        figures.predecessor.set(self.predecessor is not None)
        figures.successor.set(self.successor is not None)
        now = self.now()
        figures.members.set(sum(now - heard < MEMBER_S for heard in node.members.values()))
        self.beacons.tick(now)
        self.hearing.echoes.look()
        self._unreachable.look(now)
        self._timing.look()

    def follow(self, addresses: Iterable[str]) -> None:
        """Beacons go to these ring peers, too (3.4). Who is new need not wait for the next one."""
        self._announce(self.beacons.telling.follow(addresses))

    def _met(self, address: str) -> None:
        """A beacon of another node came from there: it may have us in its list, and not be in ours (3.4)."""
        self._announce(self.beacons.telling.met(address))

    def _announce(self, fresh: tuple[Target, ...]) -> None:
        announcement = self.node.announcement()
        if fresh and announcement is not None and not self._is_stopping:
            self.beacons.telling.send_to(fresh, announcement)

    # the store (4.7)

    def store_back(self) -> None:
        if self.node.is_away and not self._is_stopping:
            log.info("the node takes part in its ring", extra={"action": "ring_node_there"})
            self.node.store_back(self.now())
            self._act()

    def store_away(self, why: str) -> None:
        if not self.node.is_away:
            log.warning("the node leaves its ring: %s", why, extra={"action": "ring_node_away"})
            self._leave(why)

    # who is there

    @property
    def predecessor(self) -> Inbound | None:
        if self.node.tail.state is not TailState.LINKED or self.node.tail.link is None:
            return None
        return self._inbound.get(self.node.tail.link)

    @property
    def outbound(self) -> Outbound | None:
        """The connection from the head, which may not be a link yet."""
        return self._sending.outbound

    @property
    def successor(self) -> Outbound | None:
        return self._sending.successor

    # connections to the tail

    def session(self, wire: Wire) -> Session:
        """The listener's."""
        session = Inbound(self, next(self._links), wire, self._limits)
        self._inbound[session.link] = session
        self.node.accepted(session.link, self.now())
        self._act()
        return session

    def heard(self, link: int) -> bool:
        is_new = self.node.tail.state is not TailState.LINKED
        is_his = self.node.heard(link, self.now())
        if is_new:
            self._act()
        return is_his

    def received(self, message: Loop) -> None:
        self._figures.received[LOOP] += 1
        self.node.received(message, self.now())
        self._act()

    def unusable(self, session: Inbound, reason: str) -> None:
        self._figures.received[LOOP] += 1
        session.refuse(reason)

    def user_received(self) -> None:
        self._figures.received[USER] += 1

    def inbound_lost(self, session: Inbound, why: str) -> None:
        self._inbound.pop(session.link, None)
        self.node.inbound_lost(session.link, why, self.now())
        self._act()

    # what the node wants

    def _act(self) -> None:
        """Does it, whatever comes of that included; then sends what there is to send, and sets the timer."""
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
            self._tell_break()
        self._timing.set()

    def _do(self, action: SendBeacon | Dial | CloseOutbound | CloseInbound) -> None:
        match action:
            case SendBeacon(beacon):
                if not self._is_stopping:
                    self.beacons.telling.send(beacon)
            case Dial():
                self._dial(action)
            case CloseOutbound():
                self._dialling.give_up()
                self._sending.end()
            case CloseInbound(link, why):
                if (inbound := self._inbound.get(link)) is not None:
                    inbound.close(why)
            case _:
                assert_never(action)

    def _tell_break(self) -> None:
        last, number = self.node.last_break, self.node.breaks - self._breaks
        self._breaks = self.node.breaks
        assert last is not None
        self._figures.broken(last.side, last.why, number)
        fields = {"action": "ring_link_broken", "side": last.side, "detail": last.why}
        log.info("a link of the ring broke, %s: %s", last.side, last.why, extra=fields)

    # dialling

    def _dial(self, where: Dial) -> None:
        if self._is_stopping:
            self.node.connect_failed(self.now())
        else:
            self._dialling.dial(where)

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

    @property
    def _is_stopping(self) -> bool:
        return self.hearing.is_stopping

    def _is_answered(self) -> bool:
        outbound = self.outbound
        return (outbound is None or outbound.is_answered) and all(
            session.is_answered for session in self._inbound.values()
        )

    def _leave(self, why: str) -> None:
        self.node.store_away(why, self.now())
        self._act()
