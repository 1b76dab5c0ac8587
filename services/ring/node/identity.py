"""Who a node is, and the port that belongs to its name (ring.md 1)."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from services.kit.acceptor import bind
from services.kit.layers import SettingsError
from services.kit.listener import ListenerSettings
from services.ring.node.settings import NodeSettings


@dataclass(frozen=True, slots=True)
class Identity:
    """`listener` is what was said of the port, with the number it has now."""

    name: bytes
    listener: ListenerSettings
    _holder: socket.socket | None

    @property
    def service(self) -> bytes:
        """As OPENs tell it (3.1)."""
        return b"%d" % self.listener.port

    def close(self) -> None:
        """Others may have the port."""
        if self._holder is not None:
            self._holder.close()


def identify(settings: NodeSettings, listener: ListenerSettings) -> Identity:
    """Raises SettingsError if nobody could say where the node is, or the port cannot be had.

    A port that is to be any free one is chosen here, and held until `close` by a socket that does not listen: the name
    has it.
    """
    host = settings.advertise or _advertised(listener.host)
    holder = None
    if not listener.port:
        holder = bind(listener.host, 0, reuse_port=False)
        listener = listener.model_copy(update={"port": holder.getsockname()[1]})
    name = settings.name or f"{host}:{listener.port}"
    return Identity(name.encode(), listener, holder)


def _advertised(host: str) -> str:
    """The listener's own address, if others can have it out of a node's name."""
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        why = f"listeners.ring.host {host} is no address that others could connect to"
    elif address.version == 6:
        why = f"a node's name has no room for the IPv6 address {host}: others connect to what is before its first ':'"
    else:
        return host
    raise SettingsError(
        [f"edges.ring.node.advertise: missing, as {why}; say the address or name of this machine"]
    )
