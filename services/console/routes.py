"""The table of all routes of the API."""

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
ACCEPTED = {202: ("Location",)}

ROUTES: tuple[Route, ...] = (
    Route(
        "GET", "/me", None, "me.show", overview.me,
        "Show the caller's identity and role.",
        {200: shapes.Me}, tag="console",
    ),
    Route(
        "GET", "/overview", VIEW, "overview.show", overview.overview,
        "Show the store and the totals of all queues. Rates cover the last few seconds.",
        {200: shapes.Overview},
    ),
    Route(
        "GET", "/events", VIEW, "events.watch", events.stream,
        "Stream the live view as server-sent events. First `hello`, then `overview`, `queues`, `edges` and `jobs` as "
        "they change; see docs/console.md.",
        {200: None}, media="text/event-stream", tag="console",
    ),
    Route(
        "GET", "/queues", VIEW, "queue.list", queues.list_,
        "List queues by name.",
        {200: shapes.QueuePage}, query=queues.QueuesQuery, tag="queues",
    ),
    Route(
        "GET", QUEUE, VIEW, "queue.show", queues.show,
        "Show a queue with its document, figures and counters. The ETag covers the document only.",
        {200: shapes.QueueDetail}, response_headers={200: ETAG}, tag="queues",
    ),
    Route(
        "PUT", QUEUE, ADMIN, "queue.put", queues.put,
        "Create a queue or replace its document. Fields left out use their defaults.",
        {200: shapes.QueueDetail, 201: shapes.QueueDetail},
        query=queues.ReplaceQuery, body=QueueSpec, condition=Condition.REPLACE, response_headers=REPLACED, tag="queues",
    ),
    Route(
        "DELETE", QUEUE, ADMIN, "queue.delete", queues.delete,
        "Delete a queue with its messages and dead letters.",
        {200: shapes.Deleted}, query=queues.DeleteQuery, condition=Condition.MATCH, tag="queues",
    ),
    Route(
        "GET", f"{QUEUE}/history", VIEW, "queue.history", queues.history,
        "Show a queue's history as time series. Computed from the samples that edges write to the store.",
        {200: shapes.History}, query=queues.HistoryQuery, tag="queues",
    ),
    Route(
        "GET", "/history", VIEW, "history", queues.history_of_all,
        "Show the rates of all queues together as time series. Computed from the samples that edges write to the "
        "store.",
        {200: shapes.FlowHistory}, query=queues.HistoryQuery, tag="queues",
    ),
    Route(
        "GET", "/reservations", VIEW, "reservation.list", queues.reservations,
        "List reserved queues.",
        {200: shapes.ReservationPage}, query=Paged, tag="queues",
    ),
    Route(
        "POST", f"{QUEUE}/messages", OPERATE, "message.put", messages.put,
        "Publish a message. The response is sent once the message is durable at the queue's ack level. The "
        "`traceparent` header is stored with it if tracing is enabled in the console.",
        {201: shapes.Stored}, body=messages.NewMessage, longest=messages.LONGEST_REQUEST, statuses=(429, 507),
        tag="messages", is_frequent=True,
    ),
    Route(
        "GET", f"{QUEUE}/messages", VIEW, "message.peek", messages.peek,
        "Browse ready messages without consuming them. A page ends after 4 MiB of bodies.",
        {200: shapes.PeekPage}, query=messages.PeekQuery, tag="messages",
    ),
    Route(
        "POST", f"{QUEUE}/messages/purge", ADMIN, "message.purge", emptying.purge,
        "Purge a queue's ready messages. Runs as a job. Messages in flight stay, and so do messages published after "
        "the job began, or after the dry run whose `until` is given.",
        {200: shapes.Ready, 202: shapes.Job}, body=emptying.PurgeReady, condition=Condition.UNLESS_DRY,
        statuses=(429,), response_headers=ACCEPTED, tag="messages",
    ),
    Route(
        "GET", DEAD, VIEW, "dead.list", dead.list_,
        "List dead letters, oldest first. A filter is applied in small steps, and a page ends after 4 MiB of bodies, "
        "so a page may have fewer items than `limit`, even none; continue until `next` is null.",
        {200: shapes.LetterPage}, query=dead.DeadQuery, tag="dead letters",
    ),
    Route(
        "GET", f"{DEAD}/{{id}}", VIEW, "dead.show", dead.show,
        "Show a dead letter with its whole body.",
        {200: shapes.Letter}, tag="dead letters",
    ),
    Route(
        "GET", f"{DEAD}/{{id}}/body", VIEW, "dead.body", dead.body,
        "Download the body of a dead letter.",
        {200: None}, media="application/octet-stream", response_headers={200: ("Content-Disposition",)},
        tag="dead letters",
    ),
    Route(
        "POST", f"{DEAD}/redrive", OPERATE, "dead.redrive", dead.redrive,
        "Redrive dead letters. Runs as a job that moves each to the end of its queue or of a target queue, atomically.",
        {200: shapes.Matched, 202: shapes.Job}, body=Redrive, statuses=(429, 507), response_headers=ACCEPTED,
        tag="dead letters",
    ),
    Route(
        "POST", f"{DEAD}/purge", OPERATE, "dead.purge", dead.purge,
        "Purge dead letters. Runs as a job.",
        {200: shapes.Matched, 202: shapes.Job}, body=Purge, condition=Condition.UNLESS_DRY, statuses=(429,),
        response_headers=ACCEPTED, tag="dead letters",
    ),
    Route(
        "GET", "/jobs", VIEW, "job.list", jobs.list_,
        "List the jobs of all consoles of the store, newest first. Includes running jobs and the last 200 that ended "
        "within a day.",
        {200: shapes.JobPage}, query=Paged, tag="jobs",
    ),
    Route(
        "GET", JOB, VIEW, "job.show", jobs.show,
        "Show a job.",
        {200: shapes.Job}, tag="jobs",
    ),
    Route(
        "DELETE", JOB, OPERATE, "job.cancel", jobs.cancel,
        "Cancel a job. Messages already moved stay moved. The response is sent once the job has ended.",
        {200: shapes.Job}, tag="jobs",
    ),
    Route(
        "GET", "/peers", VIEW, "peer.list", peers.list_,
        "List peers by name.",
        {200: shapes.PeerPage}, query=Paged, tag="peers",
    ),
    Route(
        "GET", PEER, VIEW, "peer.show", peers.show,
        "Show a peer.",
        {200: shapes.Peer}, response_headers={200: ETAG}, tag="peers",
    ),
    Route(
        "PUT", PEER, ADMIN, "peer.put", peers.put,
        "Create a peer or replace its document.",
        {200: shapes.Peer, 201: shapes.Peer}, body=PeerSpec, condition=Condition.REPLACE, response_headers=REPLACED,
        tag="peers",
    ),
    Route(
        "DELETE", PEER, ADMIN, "peer.delete", peers.delete,
        "Delete a peer. Messages waiting for it stay in their transmission queue.",
        {204: None}, condition=Condition.MATCH, tag="peers",
    ),
    Route(
        "GET", "/edges", VIEW, "edge.list", edges.list_,
        "List edge processes of this store. A process is removed after 30 s without a heartbeat.",
        {200: shapes.EdgePage}, query=Paged, tag="processes",
    ),
    Route(
        "GET", "/connections", VIEW, "connection.list", connections.list_,
        "List connections of all edge processes. Queries the processes on each request.",
        {200: shapes.ConnectionPage}, query=connections.ConnectionsQuery, statuses=(429,), tag="processes",
    ),
    Route(
        "DELETE", "/connections/{id}", OPERATE, "connection.close", connections.close,
        "Close a connection. Data already written is sent first.",
        {200: shapes.Closed}, statuses=(429,), tag="processes",
    ),
    Route(
        "GET", "/subscriptions", VIEW, "subscription.list", connections.subscriptions,
        "List subscriptions of the text service.",
        {200: shapes.SubscriptionPage}, query=Paged, statuses=(429,), tag="processes",
    ),
    Route(
        "GET", "/ring", VIEW, "ring.show", ring.show,
        "Show the rings whose nodes report to this store.",
        {200: shapes.Rings}, tag="processes",
    ),
    Route(
        "GET", "/report", VIEW, "report.show", report.show,
        "Show the latest report of the analytics job.",
        {200: Report}, statuses=(404, 409), tag="store",
    ),
    Route(
        "GET", "/audit", ADMIN, "audit.list", audit.list_,
        "List the audit log, newest first. It has all changes and denied requests. A filter is applied in steps, so a "
        "page may have fewer items than `limit`, even none; continue until `next` is null.",
        {200: shapes.AuditPage}, query=audit.AuditQuery, tag="console",
    ),
    Route(
        "GET", "/config", ADMIN, "config.show", config.show,
        "Show the settings of this process and their sources. Secrets are masked.",
        {200: shapes.Settings}, tag="console",
    ),
)  # fmt: skip
