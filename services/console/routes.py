"""All routes."""

from __future__ import annotations

from services.console.api import (
    audit,
    config,
    connections,
    dead,
    edges,
    emptying,
    events,
    jobs,
    messages,
    overview,
    peers,
    queues,
    report,
    ring,
)
from services.console.contract import shapes
from services.console.contract.roles import Role
from services.console.core.route import Condition, Route
from services.console.queries.paging import Paged
from services.console.queries.selection import Purge, Redrive
from services.store import QueueSpec
from services.store.model import PeerSpec
from services.store.report import Report

VIEW, OPERATE, ADMIN = Role.VIEW, Role.OPERATE, Role.ADMIN
QUEUE = "/queues/{name}"
DEAD = f"{QUEUE}/dead"
PEER = "/peers/{name}"
JOB = "/jobs/{id}"
ETAG = ("ETag",)
REPLACED = {200: ETAG, 201: (*ETAG, "Location")}
BEGUN = {202: ("Location",)}

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
        {200: shapes.QueueDetail}, tells={200: ETAG}, tag="queues",
    ),
    Route(
        "PUT", QUEUE, ADMIN, "queue.put", queues.put,
        "Make a queue, or replace its document. What the body leaves out is as by default.",
        {200: shapes.QueueDetail, 201: shapes.QueueDetail},
        query=queues.ReplaceQuery, body=QueueSpec, condition=Condition.REPLACE, tells=REPLACED, tag="queues",
    ),
    Route(
        "DELETE", QUEUE, ADMIN, "queue.delete", queues.delete,
        "Remove a queue with its messages and dead letters.",
        {200: shapes.Deleted}, query=queues.DeleteQuery, condition=Condition.MATCH, tag="queues",
    ),
    Route(
        "GET", f"{QUEUE}/history", VIEW, "queue.history", queues.history,
        "What happened lately. In steps, out of the samples that edges leave in the store.",
        {200: shapes.History}, query=queues.HistoryQuery, tag="queues",
    ),
    Route(
        "GET", "/history", VIEW, "history", queues.history_of_all,
        "What was done lately with all queues together. In steps, out of the samples that edges leave in the store.",
        {200: shapes.FlowHistory}, query=queues.HistoryQuery, tag="queues",
    ),
    Route(
        "GET", "/reservations", VIEW, "reservation.list", queues.reservations,
        "Queues that somebody has reserved.",
        {200: shapes.ReservationPage}, query=Paged, tag="queues",
    ),
    Route(
        "POST", f"{QUEUE}/messages", OPERATE, "message.put", messages.put,
        "Put one message in. It is durable at the queue's ack level when this is answered. The header `traceparent` is "
        "kept with it, if the console is traced.",
        {201: shapes.Stored}, body=messages.NewMessage, longest=messages.LONGEST_REQUEST, statuses=(429, 507),
        tag="messages", is_frequent=True,
    ),
    Route(
        "GET", f"{QUEUE}/messages", VIEW, "message.peek", messages.peek,
        "The next messages that are ready. None is taken; a page ends behind 4 MiB of them.",
        {200: shapes.PeekPage}, query=messages.PeekQuery, tag="messages",
    ),
    Route(
        "POST", f"{QUEUE}/messages/purge", ADMIN, "message.purge", emptying.purge,
        "Remove the messages that are ready, for good. In the background; what is given out stays with whoever has it, "
        "and what is put in meanwhile, or after the count of a dry run whose `until` is said, stays, too.",
        {200: shapes.Ready, 202: shapes.Job}, body=emptying.PurgeReady, condition=Condition.UNLESS_DRY,
        statuses=(429,), tells=BEGUN, tag="messages",
    ),
    Route(
        "GET", DEAD, VIEW, "dead.list", dead.list_,
        "Dead letters, the oldest first. What a filter lets through is looked for in small steps, and a page ends "
        "behind 4 MiB of bodies, so it may have fewer items than asked for, even none: `next` goes on, and null says "
        "that this was the last.",
        {200: shapes.LetterPage}, query=dead.DeadQuery, tag="dead letters",
    ),
    Route(
        "GET", f"{DEAD}/{{id}}", VIEW, "dead.show", dead.show,
        "One dead letter. With its whole body.",
        {200: shapes.Letter}, tag="dead letters",
    ),
    Route(
        "GET", f"{DEAD}/{{id}}/body", VIEW, "dead.body", dead.body,
        "The body of a dead letter, as a file.",
        {200: None}, media="application/octet-stream", tells={200: ("Content-Disposition",)}, tag="dead letters",
    ),
    Route(
        "POST", f"{DEAD}/redrive", OPERATE, "dead.redrive", dead.redrive,
        "Bring dead letters back. They go to the end of their queue or of another one, each in one step.",
        {200: shapes.Matched, 202: shapes.Job}, body=Redrive, statuses=(429, 507), tells=BEGUN,
        tag="dead letters",
    ),
    Route(
        "POST", f"{DEAD}/purge", OPERATE, "dead.purge", dead.purge,
        "Remove dead letters for good. In the background.",
        {200: shapes.Matched, 202: shapes.Job}, body=Purge, condition=Condition.UNLESS_DRY, statuses=(429,),
        tells=BEGUN, tag="dead letters",
    ),
    Route(
        "GET", "/jobs", VIEW, "job.list", jobs.list_,
        "Redrives, purges and emptyings of all consoles of the store. Those under way, and of a day the last 200 that "
        "ended; the newest first.",
        {200: shapes.JobPage}, query=Paged, tag="jobs",
    ),
    Route(
        "GET", JOB, VIEW, "job.show", jobs.show,
        "One job.",
        {200: shapes.Job}, tag="jobs",
    ),
    Route(
        "DELETE", JOB, OPERATE, "job.cancel", jobs.cancel,
        "End a job. What it moved stays moved; answered when it has ended.",
        {200: shapes.Job}, tag="jobs",
    ),
    Route(
        "GET", "/peers", VIEW, "peer.list", peers.list_,
        "Peers, in the order of their names.",
        {200: shapes.PeerPage}, query=Paged, tag="peers",
    ),
    Route(
        "GET", PEER, VIEW, "peer.show", peers.show,
        "A peer.",
        {200: shapes.Peer}, tells={200: ETAG}, tag="peers",
    ),
    Route(
        "PUT", PEER, ADMIN, "peer.put", peers.put,
        "Make a peer, or replace its document.",
        {200: shapes.Peer, 201: shapes.Peer}, body=PeerSpec, condition=Condition.REPLACE, tells=REPLACED,
        tag="peers",
    ),
    Route(
        "DELETE", PEER, ADMIN, "peer.delete", peers.delete,
        "Remove a peer. What waits for it stays in its transmission queue.",
        {204: None}, condition=Condition.MATCH, tag="peers",
    ),
    Route(
        "GET", "/edges", VIEW, "edge.list", edges.list_,
        "Processes that serve this store. One that has been silent for 30 s is gone.",
        {200: shapes.EdgePage}, query=Paged, tag="processes",
    ),
    Route(
        "GET", "/connections", VIEW, "connection.list", connections.list_,
        "Connections of all processes. They are asked when somebody wants to know.",
        {200: shapes.ConnectionPage}, query=connections.ConnectionsQuery, statuses=(429,), tag="processes",
    ),
    Route(
        "DELETE", "/connections/{id}", OPERATE, "connection.close", connections.close,
        "Close a connection. What was written is sent before.",
        {200: shapes.Closed}, statuses=(429,), tag="processes",
    ),
    Route(
        "GET", "/subscriptions", VIEW, "subscription.list", connections.subscriptions,
        "Who subscribes to what, of the text service.",
        {200: shapes.SubscriptionPage}, query=Paged, statuses=(429,), tag="processes",
    ),
    Route(
        "GET", "/ring", VIEW, "ring.show", ring.show,
        "The rings that nodes have told this store of.",
        {200: shapes.Rings}, tag="processes",
    ),
    Route(
        "GET", "/report", VIEW, "report.show", report.show,
        "What the analytics job found last.",
        {200: Report}, statuses=(404, 409), tag="store",
    ),
    Route(
        "GET", "/audit", ADMIN, "audit.list", audit.list_,
        "Who changed what, and who was not let. The newest first. What a filter lets through is looked for in steps, "
        "so a page may have fewer items than asked for, even none: `next` goes on.",
        {200: shapes.AuditPage}, query=audit.AuditQuery, tag="console",
    ),
    Route(
        "GET", "/config", ADMIN, "config.show", config.show,
        "The settings of this process, secrets masked. And whence each comes.",
        {200: shapes.Settings}, tag="console",
    ),
)  # fmt: skip
