"""`bindings` of a queue: how protocols see it beside its name, and what of `access` they could not keep."""

from __future__ import annotations

from services.store.model.access_lists import Access
from services.store.model.document import Document
from services.store.model.ring_binding import RingBinding
from services.store.model.rqp_binding import CastBinding, McaBinding
from services.store.model.text_binding import TextBinding

TEXT_EDGE, RING_EDGE = "pubsub", "ring"  # as the settings name them
TEXT_HAS_NO_CLIENT_IDENTITY = (
    "access.peers and access.certificates cannot hold for bindings.text: a line of the text service does not say who "
    "sent it; leave one of them out, and say at the text edge's listeners who may connect (allow, tls.client_ca)"
)
RING_HAS_NO_CLIENT_IDENTITY = (
    "access.peers and access.certificates cannot hold for bindings.ring.inbox: nodes of a ring pass on what others "
    "sent; leave one of them out, and say at the ring edge's listener who may connect (allow, tls.client_ca)"
)
CAST_HAS_NO_CERTIFICATES = (
    "access.certificates cannot hold for bindings.rqpCast.key: RQP/cast has no TLS; leave one of them out, and say in "
    "access.peers which machines may send"
)
TEXT_EDGE_EXCLUDED = (
    f"bindings.text is of edge {TEXT_EDGE}, which access.edges leaves out: name it there, too"
)
RING_EDGE_EXCLUDED = (
    f"bindings.ring.inbox is of edge {RING_EDGE}, which access.edges leaves out: name it there, too"
)


class Bindings(Document):
    """How protocols see the queue beside its name."""

    text: TextBinding = TextBinding()
    rqp_mca: McaBinding = McaBinding()
    rqp_cast: CastBinding = CastBinding()
    ring: RingBinding = RingBinding()


def contradiction(access: Access, bindings: Bindings) -> str:
    """What a queue's bindings bring to it although its access forbids it, or cannot know: or ''.

    Nobody would be told, or nobody could ever come.
    """
    is_of_text, is_inbox = bindings.text != TextBinding(), bindings.ring.inbox is not None
    who = bool(access.peers or access.certificates)
    for is_so, problem in (
        (is_of_text and who, TEXT_HAS_NO_CLIENT_IDENTITY),
        (is_inbox and who, RING_HAS_NO_CLIENT_IDENTITY),
        (bindings.rqp_cast.key is not None and bool(access.certificates), CAST_HAS_NO_CERTIFICATES),
        (is_of_text and not access.lets_in(TEXT_EDGE), TEXT_EDGE_EXCLUDED),
        (is_inbox and not access.lets_in(RING_EDGE), RING_EDGE_EXCLUDED),
    ):
        if is_so:
            return problem
    return ""
