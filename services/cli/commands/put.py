"""penstock put."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import click

from services.cli.documents.bodies import file_option, given_bodies
from services.cli.framework.command import store_command
from services.cli.terminal.exits import Exit, Failure, failure_of, usage
from services.cli.terminal.message import asker_of, origin
from services.cli.terminal.output import Output
from services.cli.terminal.text import count
from services.store import CommitPart, Queue, Store, StoreError
from services.store.model import CERTAIN, parse_certain, trace_context
from services.store.model import records as record
from services.store.pipeline import AsyncClient

RUN_MESSAGES = 1000  # in one request
RUN_BYTES = 1 << 20
BATCH_MESSAGES = 10_000  # in one commit
BATCH_BYTES = 16 << 20


@click.command()
@click.argument("queue")
@click.argument("body", required=False)
@file_option
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
    found = await store.catalogue.find(queue)
    source = given_bodies(given["body"], given["file"], _separator(given["lines"], given["null"]))
    encoded = _encoded(source, _attributes(given["attr"], found))
    client, batch = await asker_of(store, found), given["batch_id"]
    if batch is None:
        stored = await _put(client, output, found, encoded)
        output.line(f"stored {count(stored, 'message')} in {found.name}")
    else:
        stored = await _put_batch(client, found, encoded, batch)
        output.line(f"stored in {found.name}, now or before: batch {batch}, {count(stored, 'message')}")
    if output.as_json:
        output.record({"queue": found.name, "stored": stored, "refused": 0})


def _separator(lines: bool, null: bool) -> bytes | None:
    if null and not lines:
        raise usage("--null goes with --lines")
    return (b"\0" if null else b"\n") if lines else None


def _attributes(pairs: tuple[str, ...], queue: Queue) -> dict[str, str]:
    attributes = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise usage(f"--attr wants KEY=VALUE, not {pair!r}")
        if queue.spec.remote is not None and name == CERTAIN and parse_certain(value) is None:
            raise usage(
                f"the attribute {CERTAIN} is true or false in a queue that leads elsewhere, not {value!r}"
            )
        attributes[name] = value
    return attributes


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


async def _put(client: AsyncClient, output: Output, queue: Queue, runs: AsyncIterator[list[bytes]]) -> int:
    stored = offered = 0
    try:
        with output.progress("messages", None) as advance:
            async for run in runs:
                offered += len(run)
                refused = await client.publish(queue, run, origin())
                stored += len(run) - len(refused)
                if refused:
                    raise refused[0][1]
                advance(len(run))
    except (StoreError, Failure) as error:
        failure = error if isinstance(error, Failure) else failure_of(error)
        raise _stopped(output, queue, failure, stored, offered - stored) from None
    return stored


def _stopped(output: Output, queue: Queue, failure: Failure, stored: int, refused: int) -> Failure:
    """Half way: what is stored stays stored, and whoever asked has to know how much that is."""
    if output.as_json:
        output.record({"queue": queue.name, "stored": stored, "refused": refused})
    text = f"{failure} ({count(stored, 'message')} stored before that)"
    if failure.exit is Exit.UNKNOWN:
        text = f"{failure}: {count(stored, 'message')} stored, of the next {refused:,} nobody knows; --batch-id helps"
    return failure.half_way(stored, text)


async def _put_batch(
    client: AsyncClient, queue: Queue, runs: AsyncIterator[list[bytes]], identifier: str
) -> int:
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
        # Under the queue's own id: a queue made anew under the same name has not seen the batch. The digest tells
        # this batch repeated from another one under the same id, which nobody would miss. Whoever repeats it may be in
        # another trace by now.
        digest = hashlib.sha256(b"".join(map(trace_context.without, batch))).hexdigest()
        await client.commit(
            f"cli:{queue.qid}:{identifier}", [CommitPart(queue, [], batch, origin())], digest=digest
        )
    return len(batch)
