"""The node of a process, put together: who it is, its links, and what USER messages mean to it (ring.md 1 to 5)."""

from __future__ import annotations

from services.kit.config import SettingsError
from services.kit.edge import EdgeContext
from services.ring.node.identity import identify
from services.ring.node.member import Member
from services.ring.node.users import Users
from services.ring.service import RingService
from services.ring.settings import RingSettings

LISTENER = "ring"
DIALLER = "ring-out"
PAGE = "/ring"


class RunningNode:
    def __init__(self, member: Member, users: Users) -> None:
        self.member = member
        self.users = users

    async def stop_taking(self) -> None:
        await self.users.stop_taking()
        await self.member.stop_taking()
        self.users.asker.close()  # without links no reply comes any more: their clients need not wait for it

    async def close(self) -> None:
        await self.member.close()
        await self.users.close()


async def start_node(context: EdgeContext[RingSettings], service: RingService) -> RunningNode:
    """In a process whose settings have the listener `ring`. Raises SettingsError that says what to do."""
    settings = service.settings.node
    identity = identify(settings, service.settings.listeners[LISTENER])
    users = Users(
        service,
        identity.name,
        group=settings.group,
        max_laps=settings.max_laps,
        forward_user=settings.forward_user,
        max_payload=settings.max_payload,
    )
    dialler = context.dial(DIALLER, settings.dial)
    member = Member(
        service,
        identity,
        dialler,
        users.arrivals,
        users.departures,
        users.readiness,
        has_namesake=lambda: users.has_namesake,
    )
    context.listen(LISTENER, identity.listener, member.session)
    context.add_page(PAGE, member.document)
    service.asker = users.asker
    users.asker.is_alone = lambda: not member.station.node.members
    node = RunningNode(member, users)
    users.start()
    try:
        member.start()
    except SettingsError:
        await node.close()
        raise
    return node
