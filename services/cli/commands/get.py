"""Implement `penstock get` and `penstock peek`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import click

from services.cli.framework.command import Seconds, store_command
from services.cli.terminal.exits import Exit, Failure, usage
from services.cli.terminal.message import Show, acquired, body_writer, contents, json_lines, open_client
from services.cli.terminal.output import Advance, Output
from services.cli.terminal.streams import sync, write_all
from services.cli.terminal.text import age, preview
from services.store import Delivery, Queue, Store, StoreError
from services.store.model import records as record
from services.store.pipeline import AsyncClient
from services.store.processes import Wake

PAGE = 1000  # messages per lease, write and acknowledgement
EVERYTHING = 1 << 62  # messages


@dataclass(slots=True)
class GetRun:
    """One running `get`. `held`: deliveries that are still leased, written or not."""

    queue: Queue
    client: AsyncClient
    limit: int
    keeps: bool  # --no-ack
    show: Show
    got: int = 0
    held: list[Delivery] = field(default_factory=list)

    async def step(self, advance: Advance) -> bool:
        """Lease, write and acknowledge one page of messages. Return False if the queue was empty."""
        taken = await self.client.take(self.queue, min(self.limit - self.got, PAGE))
        self.held += taken
        for delivery in taken:
            await write_all(sys.stdout.fileno(), self.show(delivery))
            self.got += delivery.count
            advance(delivery.count)
        if taken:
            sync(sys.stdout.fileno())  # before they are acknowledged
        if not self.keeps:
            written, self.held = self._leased(), []
            if written:
                await self.client.settle(written)
        return bool(taken)

    async def give_back(self) -> None:
        """Release the leases; if that fails, the store does it when this session expires."""
        if leased := self._leased():
            with suppress(StoreError):
                await self.client.release(leased)

    def _leased(self) -> list[Delivery]:
        """Return the deliveries to settle; those of an at-most-once queue are settled already."""
        return [delivery for delivery in self.held if not delivery.settled]


@click.command()
@click.argument("queue")
@click.option("-n", "number", type=click.IntRange(1), default=1, show_default=True, help="maximum number")
@click.option("--all", "everything", is_flag=True, help="all messages")
@click.option("--wait", type=Seconds(0), default=0.0, metavar="SECONDS", help="how long to wait for messages")
@click.option("--no-ack", is_flag=True, help="return the messages to the queue instead of acknowledging them")
@click.option("-0", "--null", is_flag=True, help="end each body with NUL")
@store_command
async def get(store: Store, output: Output, queue: str, **given: Any) -> None:
    """Take messages out of QUEUE and write their bodies to standard output.

    A single body is written unchanged; with -n or --all a line feed follows each. A message is acknowledged only
    after its body has been written; if writing fails, the message stays in the queue. Ends with 4 if there was none.
    """
    found = await store.catalogue.find(queue)
    if given["no_ack"] and found.at_most_once:
        raise usage(f"queue {queue!r} acknowledges messages on delivery (at-most-once): use peek")
    limit = EVERYTHING if given["everything"] else given["number"]
    show = json_lines if output.as_json else body_writer(limit, given["null"])
    get_run = GetRun(found, await open_client(store, found), limit, given["no_ack"], show)
    try:
        with output.progress("messages", None if given["everything"] else limit, alone=False) as advance:
            await _get(store, get_run, given["wait"], advance)
    finally:
        await get_run.give_back()
    if not get_run.got:
        raise Failure(Exit.NOT_FOUND, "queue_empty", f"queue {queue!r} has no message ready")


async def _get(store: Store, get_run: GetRun, wait_s: float, advance: Advance) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    async with AsyncExitStack() as stack:
        wake = (
            await stack.enter_async_context(Wake(store.connector, get_run.queue.domain)) if wait_s else None
        )
        while get_run.got < get_run.limit:
            if await get_run.step(advance):
                continue
            rest_s = deadline - loop.time()
            if wake is None or rest_s <= 0:
                return
            await wake.wait(get_run.queue, rest_s)


@click.command()
@click.argument("queue")
@click.option(
    "-n", "number", type=click.IntRange(1, 1000), default=10, show_default=True, help="maximum number"
)
@click.option("--raw", is_flag=True, help="write only the bodies, each followed by a line feed")
@store_command
async def peek(store: Store, output: Output, queue: str, number: int, raw: bool) -> None:
    """Show the next messages without taking them."""
    found = await store.catalogue.find(queue)
    deliveries = await store.get_domain(found.domain).peek(found, number)
    if raw or output.as_json:
        show = json_lines if output.as_json else body_writer(number + 1, False)
        for delivery in deliveries:
            await write_all(sys.stdout.fileno(), show(delivery))
        if deliveries:
            sync(sys.stdout.fileno())
    else:
        now_ms = await store.now_ms()
        rows = [_row(delivery, content, now_ms) for delivery in deliveries for content in contents(delivery)]
        output.table(("age#", "origin", "delivered#", "failed#", "bytes#", "attributes", "body"), rows)
    if not deliveries:
        raise Failure(Exit.NOT_FOUND, "queue_empty", f"queue {queue!r} has no message ready")


def _row(delivery: Delivery, content: record.Content, now_ms: int) -> list[str]:
    return [
        age(now_ms - delivery.enqueued_ms),
        delivery.origin,
        f"{acquired(delivery):,}",
        f"{delivery.failed:,}",
        f"{len(content.body):,}",
        " ".join(f"{name}={value}" for name, value in content.attributes.items()),
        preview(content.body),
    ]
