"""What all connections of a receiving MCA share (rqp_mca.md 2)."""

from __future__ import annotations

from services.rqp.numbers import Numbers
from services.rqp.service import RqpService

PROTOCOL = "rqp-mca"  # as queue and peer documents write it


class Receiver:
    def __init__(self, service: RqpService) -> None:
        self.service = service
        self.settings = service.settings.mca
        self.limits = self.settings.limits()
        self.numbers = Numbers(service.store, PROTOCOL)
        self.lost = service.lost.labels(service.metrics.edge, PROTOCOL)
