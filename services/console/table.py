"""All routes."""

from __future__ import annotations

from services.console import events, shapes
from services.console.api import overview, queues
from services.console.operations import Condition, Route
from services.console.roles import Role
from services.store import QueueSpec

VIEW, OPERATE, ADMIN = Role.VIEW, Role.OPERATE, Role.ADMIN
QUEUE = "/queues/{name}"

ROUTES: tuple[Route, ...] = (
    Route(
        "GET", "/me", None, "me.show", overview.me,
        "Who one is. And what he may do.",
        {200: shapes.Me}, tag="console",
    ),
    Route(
        "GET", "/overview", VIEW, "overview.show", overview.overview,
        "The store and all queues together. Rates are of the last few seconds.",
        {200: shapes.Overview},
    ),
    Route(
        "GET", "/events", VIEW, "events.watch", events.stream,
        "The live view as server-sent events. `hello`, then `overview`, `queues`, `edges` and `jobs`, each when it "
        "changed: see docs/console.md.",
        {200: None}, media="text/event-stream", tag="console",
    ),
    Route(
        "GET", "/queues", VIEW, "queue.list", queues.list_,
        "Queues, in the order of their names.",
        {200: shapes.QueuePage}, query=queues.QueuesQuery, tag="queues",
    ),
    Route(
        "GET", QUEUE, VIEW, "queue.show", queues.show,
        "A queue: its document, figures and counters. The ETag is of the document, whatever is in the queue.",
        {200: shapes.QueueDetail}, tag="queues",
    ),
    Route(
        "PUT", QUEUE, ADMIN, "queue.put", queues.put,
        "Make a queue, or replace its document. What the body leaves out is as by default.",
        {200: shapes.QueueDetail, 201: shapes.QueueDetail},
        body=QueueSpec, condition=Condition.REPLACE, tag="queues",
    ),
    Route(
        "DELETE", QUEUE, ADMIN, "queue.delete", queues.delete,
        "Remove a queue with its messages and dead letters.",
        {200: shapes.Deleted}, query=queues.DeleteQuery, condition=Condition.MATCH, tag="queues",
    ),
    Route(
        "GET", "/reservations", VIEW, "reservation.list", queues.reservations,
        "Queues that somebody has reserved.",
        {200: shapes.ReservationPage}, query=queues.Paged, tag="queues",
    ),
)  # fmt: skip
