"""Find the queues that subscribe to a tag, and make their copies of messages (pubsub.md 5.1)."""

from __future__ import annotations

from collections.abc import Iterator

from services.pubsub.render import runs
from services.pubsub.router import Router
from services.store import Queue
from services.store.log import Subscriptions
from services.store.model import records

Copies = list[tuple[Queue, bytes]]  # queue, record
NO_COPIES: Copies = []


class Bindings:
    """All queue subscriptions, as of one version of the store's table; true if there are any."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self.subscriptions = subscriptions
        self.version = subscriptions.version
        self._router: Router[Queue] = Router()
        for subscription in subscriptions.queues:
            for pattern in subscription.patterns:
                tag = pattern.encode("utf-8", "surrogateescape")
                self._router.add(tag.removesuffix(b"*"), tag.endswith(b"*"), subscription.queue)

    def __bool__(self) -> bool:
        return len(self._router) > 0

    def queues(self, tag: bytes) -> list[Queue]:
        """Return the queues that subscribe to the tag, each once."""
        return list(dict.fromkeys(self._router.match(tag)))

    def split(self, block: bytes) -> Iterator[tuple[bytes, int, Copies]]:
        """Yield the block in parts: (lines without copies, their number, none), or (one line, 1, its copies)."""
        plain: list[bytes] = []
        lines = 0
        for tag, run in runs(block):
            queues = self.queues(tag)
            if not queues:
                plain.append(run)
                lines += run.count(b"\n")
                continue
            if plain:
                yield b"".join(plain), lines, NO_COPIES
                plain, lines = [], 0
            for line in run.split(b"\n")[:-1]:
                record = record_of(tag, line)
                yield line + b"\n", 1, [(queue, record) for queue in queues]
        if plain:
            yield b"".join(plain), lines, NO_COPIES


def record_of(tag: bytes, line: bytes) -> bytes:
    """Return the message of a line `SEND tag message` as a queue's record, with the tag as attribute."""
    return records.encode(line[len(tag) + 6 :], {"tag": tag.decode("utf-8", "backslashreplace")})
