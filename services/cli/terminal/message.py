"""Format messages for output, and open the session that commands use."""

from __future__ import annotations

import base64
import getpass
import socket
import sys
from collections.abc import Callable
from typing import Any

from services.cli.terminal.output import Output
from services.cli.terminal.text import legible
from services.store import Delivery, Queue, Store
from services.store.model import records as record
from services.store.pipeline import AsyncClient

Show = Callable[[Delivery], bytes]


def origin() -> str:
    """Return the origin that messages and dead letters of this command carry."""
    return f"cli {getpass.getuser()}@{socket.gethostname()}"


async def open_client(store: Store, queue: Queue) -> AsyncClient:
    """Open a session for the queue. Raises StoreUnavailable."""
    pipe = store.open_domain(queue.domain).pipe
    await pipe.ready()
    return AsyncClient(pipe)


def body_writer(limit: int, null: bool) -> Show:
    """Return a function that formats bodies: separated if there may be several, escaped on a terminal."""
    terminal = sys.stdout.isatty()
    end = b"\0" if null else b"\n" if limit > 1 or terminal else b""

    def show(delivery: Delivery) -> bytes:
        bodies = [content.body for content in contents(delivery)]
        return b"".join((legible(body) if terminal else body) + end for body in bodies)

    return show


def contents(delivery: Delivery) -> list[record.Content]:
    """Return the decoded messages of a delivery."""
    return [record.decode(one) for one in delivery.records()]


def json_lines(delivery: Delivery) -> bytes:
    """Format the messages of a delivery as lines of JSON."""
    return b"".join(Output.encode(one) for one in described(delivery))


def described(delivery: Delivery) -> list[dict[str, Any]]:
    """Return the messages of a delivery as JSON fields."""
    return [
        {
            "queue": delivery.queue.name,
            **encoded_body(content.body),
            "attributes": dict(content.attributes),
            "origin": delivery.origin,
            "enqueued_ms": delivery.enqueued_ms,
            "acquired": acquired(delivery),
            "failed": delivery.failed,
        }
        for content in contents(delivery)
    ]


def acquired(delivery: Delivery) -> int:
    """Return how often it was delivered, including this time unless it is a peek."""
    return delivery.acquired if delivery.lot or delivery.history else 0


def encoded_body(body: bytes) -> dict[str, str]:
    """Return the body as UTF-8 text, or as base64 if it is not UTF-8."""
    try:
        return {"body": body.decode(), "encoding": "utf-8"}
    except UnicodeDecodeError:
        return {"body": base64.b64encode(body).decode(), "encoding": "base64"}
