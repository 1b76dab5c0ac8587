"""Validate `bindings` of a queue document, and find contradictions between `bindings` and `access`."""

from __future__ import annotations

from services.store.model.access_lists import Access
from services.store.model.document import Document
from services.store.model.ring_binding import RingBinding
from services.store.model.rqp_binding import CastBinding, McaBinding
from services.store.model.text_binding import TextBinding

TEXT_EDGE, RING_EDGE = "pubsub", "ring"  # as the settings name them
TEXT_HAS_NO_CLIENT_IDENTITY = (
    "access.peers and access.certificates cannot be enforced with bindings.text: lines of the text service do not name "
    "their sender; remove one of them, and restrict the text edge's listeners instead (allow, tls.client_ca)"
)
RING_HAS_NO_CLIENT_IDENTITY = (
    "access.peers and access.certificates cannot be enforced with bindings.ring.inbox: ring nodes forward messages of "
    "others; remove one of them, and restrict the ring edge's listener instead (allow, tls.client_ca)"
)
CAST_HAS_NO_CERTIFICATES = (
    "access.certificates cannot be enforced with bindings.rqpCast.key: RQP/cast has no TLS; remove one of them, and "
    "list the machines that may send in access.peers"
)
TEXT_EDGE_EXCLUDED = f"bindings.text needs edge {TEXT_EDGE}, which access.edges does not list: add it there"
RING_EDGE_EXCLUDED = (
    f"bindings.ring.inbox needs edge {RING_EDGE}, which access.edges does not list: add it there"
)


class Bindings(Document):
    """How each protocol addresses the queue, in addition to its name."""

    text: TextBinding = TextBinding()
    rqp_mca: McaBinding = McaBinding()
    rqp_cast: CastBinding = CastBinding()
    ring: RingBinding = RingBinding()


def contradiction(access: Access, bindings: Bindings) -> str:
    """Return how `bindings` contradict `access`, or ''.

    Such a queue would silently admit clients that `access` excludes, or would refuse every message of the binding.
    """
    is_of_text, is_inbox = bindings.text != TextBinding(), bindings.ring.inbox is not None
    names_clients = bool(access.peers or access.certificates)
    for is_so, problem in (
        (is_of_text and names_clients, TEXT_HAS_NO_CLIENT_IDENTITY),
        (is_inbox and names_clients, RING_HAS_NO_CLIENT_IDENTITY),
        (bindings.rqp_cast.key is not None and bool(access.certificates), CAST_HAS_NO_CERTIFICATES),
        (is_of_text and not access.admits_edge(TEXT_EDGE), TEXT_EDGE_EXCLUDED),
        (is_inbox and not access.admits_edge(RING_EDGE), RING_EDGE_EXCLUDED),
    ):
        if is_so:
            return problem
    return ""
