"""Building blocks of a protocol's session: ordered input, ordered replies, back-pressure and a graceful close.

They compute from what the connection passes in, and know neither sockets nor timers.
"""

from services.kit.session.answers import Slot
from services.kit.session.conversation import Conversation
from services.kit.session.graceful_close import GracefulClose
from services.kit.session.inflow import Inflow
from services.kit.session.inflow_session import InflowSession
from services.kit.session.parsing import Handler
from services.kit.session.session import Peer, Session, SessionFactory, Wire

__all__ = [
    "Conversation",
    "GracefulClose",
    "Handler",
    "Inflow",
    "InflowSession",
    "Peer",
    "Session",
    "SessionFactory",
    "Slot",
    "Wire",
]
