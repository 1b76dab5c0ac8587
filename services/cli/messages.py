"""penstock put, get, peek."""

from __future__ import annotations

import asyncio
import base64
import getpass
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from services.cli.command import store_command
from services.cli.exits import Exit, Failure, failure_of, usage
from services.cli.output import Output
from services.cli.streams import read_chunks, read_pieces, write_all
from services.cli.text import age, count, legible, preview
from services.store import Delivery, Part, Queue, Store, StoreError
from services.store import records as record
from services.store.asking import Asker
from services.store.waking import Wake

RUN_MESSAGES = 1000  # in one request
RUN_BYTES = 1 << 20
BATCH_MESSAGES = 10_000  # in one commit
BATCH_BYTES = 16 << 20
EVERYTHING = 1 << 62  # messages


def origin() -> str:
    """How messages and dead letters name us."""
    return f"cli {getpass.getuser()}@{socket.gethostname()}"


async def asker_of(store: Store, queue: Queue) -> Asker:
    """Raises StoreUnavailable where no session can be opened."""
    pipe = store.domain(queue.domain).pipe
    await pipe.ready()
    return Asker(pipe)


# put ---------------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("queue")
@click.argument("body", required=False)
@click.option(
    "--file", type=click.Path(path_type=Path), help="the message is what the file holds; - for stdin"
)
@click.option("--lines", is_flag=True, help="each line of the input is a message")
@click.option("-0", "--null", is_flag=True, help="with --lines: they end with NUL instead of a line feed")
@click.option("--attr", multiple=True, metavar="KEY=VALUE", help="an attribute of every message; repeatable")
@click.option("--batch-id", metavar="ID", help="all or nothing, and under this id only once in 24 hours")
@store_command
async def put(store: Store, output: Output, queue: str, **given: Any) -> None:
    """Put messages into QUEUE.

    That is BODY; without it, what --file or standard input holds. It ends with 0 once everything is durable at
    the queue's ack level.
    """
    found = await store.find(queue)
    source = _runs(given["body"], given["file"], _separator(given["lines"], given["null"]))
    encoded = _encoded(source, _attributes(given["attr"]))
    if given["batch_id"] is None:
        stored = await _put(await asker_of(store, found), output, found, encoded)
    else:
        stored = await _put_batch(await asker_of(store, found), found, encoded, given["batch_id"])
    output.line(f"stored {count(stored, 'message')} in {found.name}")
    if output.as_json:
        output.record({"queue": found.name, "stored": stored, "refused": 0})


def _separator(lines: bool, null: bool) -> bytes | None:
    if null and not lines:
        raise usage("--null goes with --lines")
    return (b"\0" if null else b"\n") if lines else None


def _attributes(pairs: tuple[str, ...]) -> dict[str, str]:
    attributes = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise usage(f"--attr wants KEY=VALUE, not {pair!r}")
        attributes[name] = value
    return attributes


async def _runs(body: str | None, file: Path | None, separator: bytes | None) -> AsyncIterator[list[bytes]]:
    """The bodies to put, in runs as they come."""
    if body is not None:
        if file is not None or separator is not None:
            raise usage("give either BODY, or --file and --lines")
        yield [os.fsencode(body)]
        return
    if file is None and sys.stdin.isatty():
        raise usage("no BODY: give it as an argument, with --file, or on standard input")
    fd = _open(file)
    try:
        if separator is None:
            yield [await _whole(fd)]
        else:
            async for pieces in read_pieces(fd, separator, record.MAX_LENGTH):
                yield pieces
    except ValueError:
        raise usage(
            f"a message may have at most {record.MAX_LENGTH:,} bytes: one of the input has more"
        ) from None
    finally:
        if fd != sys.stdin.fileno():
            os.close(fd)


def _open(file: Path | None) -> int:
    if file is None or str(file) == "-":
        return sys.stdin.fileno()
    try:
        return os.open(file, os.O_RDONLY)
    except OSError as error:
        raise usage(f"{file} cannot be read: {error.strerror}") from None


async def _whole(fd: int) -> bytes:
    chunks, size = [], 0
    async for chunk in read_chunks(fd):
        chunks.append(chunk)
        size += len(chunk)
        if size > record.MAX_LENGTH:
            raise ValueError
    return b"".join(chunks)


async def _encoded(
    runs: AsyncIterator[list[bytes]], attributes: dict[str, str]
) -> AsyncIterator[list[bytes]]:
    """Records, in runs that one request may carry."""
    async for bodies in runs:
        run: list[bytes] = []
        size = 0
        for body in bodies:
            try:
                encoded = record.encode(body, attributes)
            except ValueError as error:
                raise usage(str(error)) from None
            if run and (len(run) == RUN_MESSAGES or size + len(encoded) > RUN_BYTES):
                yield run
                run, size = [], 0
            run.append(encoded)
            size += len(encoded)
        yield run


async def _put(asker: Asker, output: Output, queue: Queue, runs: AsyncIterator[list[bytes]]) -> int:
    stored = 0
    with output.progress("messages", None) as advance:
        async for run in runs:
            try:
                refused = await asker.publish(queue, run, origin())
            except StoreError as error:
                raise _stopped(output, queue, error, stored, len(run)) from None
            if refused:
                stored += len(run) - len(refused)
                raise _stopped(output, queue, refused[0][1], stored, len(refused))
            stored += len(run)
            advance(len(run))
    return stored


def _stopped(output: Output, queue: Queue, error: StoreError, stored: int, refused: int) -> Failure:
    """Half way: what is stored stays stored, and whoever asked has to know how much that is."""
    if output.as_json:
        output.record({"queue": queue.name, "stored": stored, "refused": refused})
    failure = failure_of(error)
    if failure.exit is Exit.UNKNOWN:
        text = f"{error}: {count(stored, 'message')} stored, of the next {refused:,} nobody knows; --batch-id helps"
    else:
        text = f"{error} ({count(stored, 'message')} stored before that)"
    return Failure(failure.exit, failure.label, text)


async def _put_batch(asker: Asker, queue: Queue, runs: AsyncIterator[list[bytes]], identifier: str) -> int:
    batch: list[bytes] = []
    size = 0
    async for run in runs:
        batch += run
        size += sum(map(len, run))
        if len(batch) > BATCH_MESSAGES or size > BATCH_BYTES:
            raise usage(
                f"a batch has at most {BATCH_MESSAGES:,} messages and 16 MiB: split it, each with its own id"
            )
    if batch:
        # Under the queue's own id: a queue made anew under the same name has not seen the batch.
        await asker.commit(f"cli:{queue.qid}:{identifier}", [Part(queue, [], batch, origin())])
    return len(batch)


# get ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Getting:
    """One `get` under way. `held`: written or not, but still leased."""

    queue: Queue
    asker: Asker
    wanted: int
    keeps: bool  # --no-ack
    show: Any
    got: int = 0
    held: list[Delivery] = field(default_factory=list)

    async def step(self) -> bool:
        """Takes, writes, settles; False if the queue had nothing."""
        taken = await self.asker.take(self.queue, min(self.wanted - self.got, RUN_MESSAGES))
        self.held += taken
        for delivery in taken:
            await write_all(sys.stdout.fileno(), self.show(delivery))
            self.got += delivery.count
        if not self.keeps:
            written, self.held = self.held, []
            if written and not self.queue.at_most_once:  # there the store has settled them already
                await self.asker.settle(written)
        return bool(taken)

    async def give_back(self) -> None:
        """If that fails, they go back when our session is found dead."""
        if self.held and not self.queue.at_most_once:
            with suppress(StoreError):
                await self.asker.release(self.held)


@click.command()
@click.argument("queue")
@click.option("-n", "number", type=click.IntRange(1), default=1, show_default=True, help="at most so many")
@click.option("--all", "everything", is_flag=True, help="as many as there are")
@click.option(
    "--wait", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="wait so long for them"
)
@click.option("--no-ack", is_flag=True, help="give them back afterwards instead of taking them for good")
@click.option("-0", "--null", is_flag=True, help="end each body with NUL")
@store_command
async def get(store: Store, output: Output, queue: str, **given: Any) -> None:
    """Take messages out of QUEUE.

    Their bodies go to standard output. A single body is written as it is; with -n or --all each is followed by
    a line feed. A message is settled only after its body was written out: when that fails, it stays in the
    queue. Ends with 4 if there was none.
    """
    found = await store.find(queue)
    if given["no_ack"] and found.at_most_once:
        raise usage(f"queue {queue!r} settles messages as it gives them out (at-most-once): use peek")
    wanted = EVERYTHING if given["everything"] else given["number"]
    show = _json_line if output.as_json else _body_writer(wanted, given["null"])
    getting = Getting(found, await asker_of(store, found), wanted, given["no_ack"], show)
    try:
        await _get(store, getting, given["wait"])
    finally:
        await getting.give_back()
    if not getting.got:
        raise Failure(Exit.NOT_FOUND, "queue_empty", f"queue {queue!r} has no message ready")


async def _get(store: Store, getting: Getting, wait_s: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    async with AsyncExitStack() as stack:
        wake = (
            await stack.enter_async_context(Wake(store.connector, getting.queue.domain)) if wait_s else None
        )
        while getting.got < getting.wanted:
            if await getting.step():
                continue
            rest_s = deadline - loop.time()
            if wake is None or rest_s <= 0:
                return
            await wake.wait(getting.queue, rest_s)


def _body_writer(wanted: int, null: bool) -> Any:
    """How bodies are written: apart if there may be several, and harmless on a terminal."""
    terminal = sys.stdout.isatty()
    end = b"\0" if null else b"\n" if wanted > 1 or terminal else b""

    def show(delivery: Delivery) -> bytes:
        bodies = [content.body for content in contents(delivery)]
        return b"".join((legible(body) if terminal else body) + end for body in bodies)

    return show


def contents(delivery: Delivery) -> list[record.Content]:
    return [record.decode(one) for one in delivery.records()]


def _json_line(delivery: Delivery) -> bytes:
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
            "acquired": _acquired(delivery),
            "failed": delivery.failed,
        }
        for content in contents(delivery)
    ]


def _acquired(delivery: Delivery) -> int:
    """How often it was given out, this time included; a peek is not one."""
    return delivery.acquired if delivery.lot or delivery.history else 0


def encoded_body(body: bytes) -> dict[str, str]:
    """UTF-8 as it is, everything else as base64."""
    try:
        return {"body": body.decode(), "encoding": "utf-8"}
    except UnicodeDecodeError:
        return {"body": base64.b64encode(body).decode(), "encoding": "base64"}


# peek --------------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("queue")
@click.option(
    "-n", "number", type=click.IntRange(1, 1000), default=10, show_default=True, help="at most so many"
)
@click.option("--raw", is_flag=True, help="only the bodies, each followed by a line feed")
@store_command
async def peek(store: Store, output: Output, queue: str, number: int, raw: bool) -> None:
    """Show the next messages, taking none."""
    found = await store.find(queue)
    deliveries = await store.look_at(found.domain).peek(found, number)
    if raw or output.as_json:
        show = _json_line if output.as_json else _body_writer(number + 1, False)
        for delivery in deliveries:
            await write_all(sys.stdout.fileno(), show(delivery))
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
        f"{_acquired(delivery):,}",
        f"{delivery.failed:,}",
        f"{len(content.body):,}",
        " ".join(f"{name}={value}" for name, value in content.attributes.items()),
        preview(content.body),
    ]
