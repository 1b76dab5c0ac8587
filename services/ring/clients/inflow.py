"""The input of a client connection, which several operations may hold up at once."""

from __future__ import annotations

from protos.ring import ClientConnection, ClientEvent
from services.kit.session import Handler, Inflow
from services.ring.clients.conversation import ClientConversation


class ClientInflow(Inflow[ClientEvent]):
    """An Inflow that counts holds: runs of pushes overlap, so one may look up its queue again during a later pull."""

    __slots__ = ("_holds",)

    def __init__(
        self, conversation: ClientConversation, parser: ClientConnection, handler: Handler[ClientEvent]
    ) -> None:
        super().__init__(conversation, parser, handler)
        self._holds = 0

    def hold(self) -> None:
        """Hold the input up once more."""
        self._holds += 1
        super().hold()

    def free(self) -> None:
        """End one hold; the input goes on after the last one ended."""
        self._holds -= 1
        if not self._holds:
            super().free()
