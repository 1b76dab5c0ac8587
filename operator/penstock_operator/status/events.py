"""Write Kubernetes events, one per change."""

from __future__ import annotations

import logging
import socket
from datetime import UTC, datetime
from enum import StrEnum

from penstock_operator.cluster.api import Api, ApiError
from penstock_operator.cluster.resources import SINGULAR, Resource
from penstock_operator.metrics.metrics import Metrics
from services.store.model import API_VERSION

log = logging.getLogger(__name__)

COMPONENT = "penstock-operator"
MAX_MESSAGE = 1000  # bytes; the API server accepts 1024


class Severity(StrEnum):
    """The type of an event."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Recorder:
    """Writes events to the API server and the log."""

    def __init__(self, api: Api, metrics: Metrics) -> None:
        self._api = api
        self._metrics = metrics
        self._instance = socket.gethostname()

    async def record(self, resource: Resource, severity: Severity, reason: str, message: str) -> None:
        """Log and write an event. Never raises."""
        message = message.encode()[:MAX_MESSAGE].decode(errors="ignore")
        fields = {"action": "event", "object": str(resource.key), "reason": reason}
        level = logging.INFO if severity is Severity.NORMAL else logging.WARNING
        log.log(level, "%s: %s", resource.key, message, extra=fields)
        path = f"/api/v1/namespaces/{resource.key.namespace}/events"
        try:
            await self._api.call("POST", path, self._document(resource, severity, reason, message))
        except ApiError as error:
            log.debug("the event could not be written: %s", error, extra={"action": "event_failed"})
        else:
            self._metrics.events.labels(reason).inc()

    def _document(
        self, resource: Resource, severity: Severity, reason: str, message: str
    ) -> dict[str, object]:
        kind, namespace, name = resource.key
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{name[:200]}.", "namespace": namespace},
            "involvedObject": {
                "apiVersion": API_VERSION,
                "kind": SINGULAR[kind],
                "namespace": namespace,
                "name": name,
                "uid": resource.uid,
            },
            "type": severity.value,
            "reason": reason,
            "message": message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
