"""Models of the API's responses. Handlers build plain dictionaries, and tests validate them against these."""

from services.console.contract.shapes.letters import (
    Job,
    JobPage,
    Letter,
    LetterPage,
    Matched,
    PeekPage,
    Ready,
    Stored,
)
from services.console.contract.shapes.parts import ProblemShape
from services.console.contract.shapes.processes import (
    Closed,
    ConnectionPage,
    EdgePage,
    Peer,
    PeerPage,
    Rings,
    SubscriptionPage,
)
from services.console.contract.shapes.queues import (
    Deleted,
    FlowHistory,
    History,
    QueueDetail,
    QueuePage,
    QueueSummary,
    ReservationPage,
)
from services.console.contract.shapes.store import AuditPage, Me, Overview, Settings

__all__ = [
    "AuditPage",
    "Closed",
    "ConnectionPage",
    "Deleted",
    "EdgePage",
    "FlowHistory",
    "History",
    "Job",
    "JobPage",
    "Letter",
    "LetterPage",
    "Matched",
    "Me",
    "Overview",
    "PeekPage",
    "Peer",
    "PeerPage",
    "ProblemShape",
    "QueueDetail",
    "QueuePage",
    "QueueSummary",
    "Ready",
    "ReservationPage",
    "Rings",
    "Settings",
    "Stored",
    "SubscriptionPage",
]
