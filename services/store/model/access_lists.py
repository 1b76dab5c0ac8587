"""Validate `access` of a queue document: the clients that may put messages in and take them out, over any edge.

A client must satisfy all three lists; an empty list allows everyone. Internal callers (sending agents, outboxes, the
administrator's command line) are not clients and always have access.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from services.store.model.document import Document, list_as_in, matching, text_schema

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

EDGE = re.compile(r"[a-z][a-z0-9-]{0,62}")
NO_EDGE = "write an edge as the settings name it: tmq, rqp, ring, pubsub, sysv"
NETWORK = re.compile(r"[0-9A-Fa-f.:]+(?:/(?:0|[1-9][0-9]{0,2}))?")
MAX_NETWORK = 49  # characters: the longest address, and a length
NO_NETWORK = "write an address or a network, as in 10.0.0.7, 10.0.0.0/8 or fd00::/8"
HOST_BITS = "a network has no host bits set: write 10.0.0.0/8, not 10.0.0.7/8"
CERTIFICATE = re.compile(r"[^\x00-\x1f\x7f]{1,255}")
MAX_CERTIFICATE = 255  # characters
NO_CERTIFICATE = "a name in a certificate has 1 to 255 characters"
MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")


def parse_network(text: str) -> Network:
    """Parse an IPv4 or IPv6 address or network. Raises ValueError."""
    if not NETWORK.fullmatch(text) or len(text) > MAX_NETWORK:
        raise ValueError(NO_NETWORK)
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(NO_NETWORK) from None
    if network.network_address != ipaddress.ip_interface(text).ip:
        raise ValueError(HOST_BITS)
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(MAPPED):
        raise ValueError(NO_NETWORK)  # a client at ::ffff:a.b.c.d is compared as a.b.c.d
    return network


def check_network(text: str) -> str:
    """Return the text of an address or network. Raises ValueError."""
    parse_network(text)
    return text


LIST = list_as_in("[tmq, rqp]")
EdgeName = Annotated[str, matching(EDGE, NO_EDGE), text_schema(EDGE.pattern, 63, NO_EDGE)]
ClientNetwork = Annotated[
    str, AfterValidator(check_network), text_schema(NETWORK.pattern, MAX_NETWORK, NO_NETWORK)
]
CertificateName = Annotated[
    str,
    matching(CERTIFICATE, NO_CERTIFICATE),
    text_schema(CERTIFICATE.pattern, MAX_CERTIFICATE, NO_CERTIFICATE),
]


class Access(Document):
    """Clients that may put messages in and take them out; a client must satisfy every list."""

    edges: Annotated[tuple[EdgeName, ...], LIST] = Field(
        (), max_length=20, description="an edge whose clients are allowed; none = all edges"
    )
    peers: Annotated[tuple[ClientNetwork, ...], LIST] = Field(
        (), max_length=200, description="an address or network of allowed clients; none = any"
    )
    certificates: Annotated[tuple[CertificateName, ...], LIST] = Field(
        (),
        max_length=200,
        description="a name in the verified certificate of allowed clients: the subject's common name, a DNS name or a "
        "URI; none = any client, with or without a certificate",
    )

    def admits_edge(self, edge: str) -> bool:
        """Return whether clients of this edge may have access."""
        return not self.edges or edge in self.edges
