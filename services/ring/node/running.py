"""Assemble the node of a process: its identity, its links and the handling of USER messages (ring.md 1 to 5)."""

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
    """A started node."""

    def __init__(self, member: Member, users: Users) -> None:
        self.member = member
        self.users = users

    async def stop_taking(self) -> None:
        """Drain: stop the outbox, close the links, then fail the requests that can get no reply any more."""
        await self.users.stop_taking()
        await self.member.station.stop_taking()
        self.users.remote_requests.close()

    async def close(self) -> None:
        """Close the links, then everything else."""
        await self.member.close()
        await self.users.close()


async def start_node(context: EdgeContext[RingSettings], service: RingService) -> RunningNode:
    """Start the node of a process whose settings have the listener `ring`. Raises SettingsError."""
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
        users.user_sink,
        users.user_source,
        users.readiness,
        has_duplicate_name=lambda: users.ownership.has_duplicate_name,
    )
    context.listen(LISTENER, identity.listener, member.station.session)
    context.add_page(PAGE, member.status.document)
    service.remote_queues = users.remote_requests
    users.remote_requests.is_alone = lambda: not member.station.node.members
    node = RunningNode(member, users)
    users.start()
    try:
        member.start()
    except SettingsError:
        await node.close()
        raise
    return node
