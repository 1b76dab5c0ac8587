"""`bindings` of a queue: how protocols see it beside its name."""

from __future__ import annotations

from services.store.document import Document
from services.store.ring_binding import RingBinding
from services.store.rqp_binding import CastBinding, McaBinding
from services.store.text_binding import TextBinding


class Bindings(Document):
    """How protocols see the queue beside its name."""

    text: TextBinding = TextBinding()
    rqp_mca: McaBinding = McaBinding()
    rqp_cast: CastBinding = CastBinding()
    ring: RingBinding = RingBinding()
