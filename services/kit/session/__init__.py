"""What a protocol's session is made of: input in order, replies in order, back-pressure and a graceful close.

It computes with what the connection hands in, and knows neither sockets nor timers.
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
