"""What may be said of the ring edge: `edges.ring` in the file (numbers in brackets are sections of ring.md)."""

from __future__ import annotations

from pydantic import Field

from protos.ring import CLIENT_PORT, RING_PORT, Limits
from services.kit.config import MAX_SECONDS
from services.kit.edge import EdgeSettings
from services.kit.net import ListenerSettings
from services.ring.clients.settings import ClientSettings
from services.ring.node.settings import NodeSettings
from services.store.timeouts import StoreTimeouts

CLIENTS = "clients"  # the listener for them


class RingSettings(EdgeSettings):
    """What holds for both parts. Listener `ring` is the predecessor's [1.1]; all others are client ports [5.2]."""

    listeners: dict[str, ListenerSettings] = Field(
        default_factory=lambda: {
            CLIENTS: ListenerSettings(port=CLIENT_PORT),
            "ring": ListenerSettings(port=RING_PORT, max_connections=64),
        },
        description="`ring: off`: no node, the client port alone",
    )
    workers: int = Field(default=1, ge=1, le=1, description="a node is one process")
    clients: ClientSettings = ClientSettings()
    node: NodeSettings = NodeSettings()
    store: StoreTimeouts = StoreTimeouts()
    request_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="[2.7, 5.6] a message or request unfinished for so long closes the connection; so does one whose "
        "outcome the store has not told by then",
    )

    def client_limits(self) -> Limits:
        return Limits(
            max_message_bytes=self.clients.max_message_bytes, request_timeout_s=self.request_timeout_s
        )
