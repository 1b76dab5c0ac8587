"""Connections: listeners, diallers, TLS, limits, timers and the memory that they may hold.

It knows the session of a connection as an interface only, and no protocol.
"""

from services.kit.net.acceptor import (
    BATCH,
    EXHAUSTED,
    REST_S,
    Acceptor,
    AddressInUse,
    cannot_listen,
    listening,
    open_bound,
)
from services.kit.net.alarm import Alarm
from services.kit.net.connection_inspector import number, of_peer
from services.kit.net.connection_limits import Gate, Network, Networks, plain_address
from services.kit.net.dialler import Dialler, DialSettings
from services.kit.net.host import NOBODY
from services.kit.net.listener import BindAddress, ListenerSettings, port_setting
from services.kit.net.proxy_header import proxy_fault, proxy_version
from services.kit.net.refusals import Denials, Refusal, Refusals, Throttle
from services.kit.net.tls import TlsKeeper, TlsSettings, server_context
from services.kit.net.tls_hello import begins_tls

__all__ = [
    "BATCH",
    "EXHAUSTED",
    "NOBODY",
    "REST_S",
    "Acceptor",
    "AddressInUse",
    "Alarm",
    "BindAddress",
    "Denials",
    "DialSettings",
    "Dialler",
    "Gate",
    "ListenerSettings",
    "Network",
    "Networks",
    "Refusal",
    "Refusals",
    "Throttle",
    "TlsKeeper",
    "TlsSettings",
    "begins_tls",
    "cannot_listen",
    "listening",
    "number",
    "of_peer",
    "open_bound",
    "plain_address",
    "port_setting",
    "proxy_fault",
    "proxy_version",
    "server_context",
]
