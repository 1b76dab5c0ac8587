"""penstock get, penstock peek."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import click

from services.cli.framework.command import Seconds, store_command
from services.cli.terminal.exits import Exit, Failure, usage
from services.cli.terminal.message import Show, acquired, asker_of, body_writer, contents, json_lines
from services.cli.terminal.output import Advance, Output
from services.cli.terminal.streams import sync, write_all
from services.cli.terminal.text import age, preview
from services.store import Delivery, Queue, Store, StoreError
from services.store.model import records as record
from services.store.pipeline import AsyncClient
from services.store.processes import Wake

PAGE = 1000  # messages taken, written and settled together
EVERYTHING = 1 << 62  # messages


@dataclass(slots=True)
class Getting:
    """One `get` under way. `held`: written or not, but still leased."""

    queue: Queue
    client: AsyncClient
    wanted: int
    keeps: bool  # --no-ack
    show: Show
    got: int = 0
    held: list[Delivery] = field(default_factory=list)

    async def step(self, advance: Advance) -> bool:
        """Takes, writes, settles; False if the queue had nothing."""
        taken = await self.client.take(self.queue, min(self.wanted - self.got, PAGE))
        self.held += taken
        for delivery in taken:
            await write_all(sys.stdout.fileno(), self.show(delivery))
            self.got += delivery.count
            advance(delivery.count)
        if taken:
            sync(sys.stdout.fileno())  # before they are settled
        if not self.keeps:
            written, self.held = self._leased(), []
            if written:
                await self.client.settle(written)
        return bool(taken)

    async def give_back(self) -> None:
        """If that fails, they go back when our session is found dead."""
        if leased := self._leased():
            with suppress(StoreError):
                await self.client.release(leased)

    def _leased(self) -> list[Delivery]:
        """Those of a queue that delivers at most once are settled already."""
        return [delivery for delivery in self.held if not delivery.settled]


@click.command()
@click.argument("queue")
@click.option("-n", "number", type=click.IntRange(1), default=1, show_default=True, help="at most so many")
@click.option("--all", "everything", is_flag=True, help="as many as there are")
@click.option("--wait", type=Seconds(0), default=0.0, metavar="SECONDS", help="wait so long for them")
@click.option("--no-ack", is_flag=True, help="give them back afterwards instead of taking them for good")
@click.option("-0", "--null", is_flag=True, help="end each body with NUL")
@store_command
async def get(store: Store, output: Output, queue: str, **given: Any) -> None:
    """Take messages out of QUEUE.

    Their bodies go to standard output. A single body is written as it is; with -n or --all each is followed by
    a line feed. A message is settled only after its body was written out: when that fails, it stays in the
    queue. Ends with 4 if there was none.
    """
    found = await store.catalogue.find(queue)
    if given["no_ack"] and found.at_most_once:
        raise usage(f"queue {queue!r} settles messages as it gives them out (at-most-once): use peek")
    wanted = EVERYTHING if given["everything"] else given["number"]
    show = json_lines if output.as_json else body_writer(wanted, given["null"])
    getting = Getting(found, await asker_of(store, found), wanted, given["no_ack"], show)
    try:
        with output.progress("messages", None if given["everything"] else wanted, alone=False) as advance:
            await _get(store, getting, given["wait"], advance)
    finally:
        await getting.give_back()
    if not getting.got:
        raise Failure(Exit.NOT_FOUND, "queue_empty", f"queue {queue!r} has no message ready")


async def _get(store: Store, getting: Getting, wait_s: float, advance: Advance) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    async with AsyncExitStack() as stack:
        wake = (
            await stack.enter_async_context(Wake(store.connector, getting.queue.domain)) if wait_s else None
        )
        while getting.got < getting.wanted:
            if await getting.step(advance):
                continue
            rest_s = deadline - loop.time()
            if wake is None or rest_s <= 0:
                return
            await wake.wait(getting.queue, rest_s)


@click.command()
@click.argument("queue")
@click.option(
    "-n", "number", type=click.IntRange(1, 1000), default=10, show_default=True, help="at most so many"
)
@click.option("--raw", is_flag=True, help="only the bodies, each followed by a line feed")
@store_command
async def peek(store: Store, output: Output, queue: str, number: int, raw: bool) -> None:
    """Show the next messages, taking none."""
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
        output.table(("age#", "origin", "given out#", "failed#", "bytes#", "attributes", "body"), rows)
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
