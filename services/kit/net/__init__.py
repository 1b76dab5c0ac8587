"""Connections: listeners, diallers, TLS, limits, timers and memory budgets.

It knows a session as an interface only, and no protocol.
"""

from services.kit.net.acceptor import (
    ACCEPT_BATCH,
    EXHAUSTED_ERRNOS,
    EXHAUSTED_PAUSE_S,
    Acceptor,
    AddressInUse,
    listen_error,
    open_bound,
    open_listening,
)
from services.kit.net.alarm import Alarm
from services.kit.net.connection_inspector import count_argument, describe_peer
from services.kit.net.connection_limits import ConnectionLimits, Network, Networks, plain_address
from services.kit.net.dialler import Dialler, DialSettings
from services.kit.net.host import NO_SESSION
from services.kit.net.listener import BindAddress, ListenerSettings, port_setting
from services.kit.net.proxy_header import proxy_fault, proxy_version
from services.kit.net.refusals import Denials, Refusal, Refusals, Throttle
from services.kit.net.shell import shell_example
from services.kit.net.tls import ReloadableTlsContext, TlsSettings, server_context
from services.kit.net.tls_hello import begins_tls

__all__ = [
    "ACCEPT_BATCH",
    "EXHAUSTED_ERRNOS",
    "EXHAUSTED_PAUSE_S",
    "NO_SESSION",
    "Acceptor",
    "AddressInUse",
    "Alarm",
    "BindAddress",
    "ConnectionLimits",
    "Denials",
    "DialSettings",
    "Dialler",
    "ListenerSettings",
    "Network",
    "Networks",
    "Refusal",
    "Refusals",
    "ReloadableTlsContext",
    "Throttle",
    "TlsSettings",
    "begins_tls",
    "count_argument",
    "describe_peer",
    "listen_error",
    "open_bound",
    "open_listening",
    "plain_address",
    "port_setting",
    "proxy_fault",
    "proxy_version",
    "server_context",
    "shell_example",
]
