"""A connection's input, held up by as many as like: it goes on once the last of them lets it."""

from __future__ import annotations

from protos.ring import ClientConnection, ClientEvent
from services.kit.session import Handler, Inflow
from services.ring.clients.conversation import ClientConversation


class ClientInflow(Inflow[ClientEvent]):
    """Runs of pushes overlap, so one may have to look for its queue again while a later pull is under way."""

    __slots__ = ("_holds",)

    def __init__(
        self, conversation: ClientConversation, parser: ClientConnection, handler: Handler[ClientEvent]
    ) -> None:
        super().__init__(conversation, parser, handler)
        self._holds = 0

    def hold(self) -> None:
        self._holds += 1
        super().hold()

    def free(self) -> None:
        self._holds -= 1
        if not self._holds:
            super().free()
