"""A message as commands show it, and the session that they put and take it with."""

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
    """How messages and dead letters name us."""
    return f"cli {getpass.getuser()}@{socket.gethostname()}"


async def asker_of(store: Store, queue: Queue) -> AsyncClient:
    """Raises StoreUnavailable where no session can be opened."""
    pipe = store.open_domain(queue.domain).pipe
    await pipe.ready()
    return AsyncClient(pipe)


def body_writer(wanted: int, null: bool) -> Show:
    """How bodies are written: apart if there may be several, and harmless on a terminal."""
    terminal = sys.stdout.isatty()
    end = b"\0" if null else b"\n" if wanted > 1 or terminal else b""

    def show(delivery: Delivery) -> bytes:
        bodies = [content.body for content in contents(delivery)]
        return b"".join((legible(body) if terminal else body) + end for body in bodies)

    return show


def contents(delivery: Delivery) -> list[record.Content]:
    return [record.decode(one) for one in delivery.records()]


def json_lines(delivery: Delivery) -> bytes:
    return b"".join(Output.encode(one) for one in described(delivery))


def described(delivery: Delivery) -> list[dict[str, Any]]:
    """Each message for programs."""
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
    """How often it was given out, this time included; a peek is not one."""
    return delivery.acquired if delivery.lot or delivery.history else 0


def encoded_body(body: bytes) -> dict[str, str]:
    """UTF-8 as it is, everything else as base64."""
    try:
        return {"body": body.decode(), "encoding": "utf-8"}
    except UnicodeDecodeError:
        return {"body": base64.b64encode(body).decode(), "encoding": "base64"}
