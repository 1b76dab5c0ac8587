"""Implement `penstock put`."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import click

from services.cli.documents.bodies import file_option, given_bodies
from services.cli.framework.command import store_command
from services.cli.terminal.exits import Exit, Failure, failure_of, usage
from services.cli.terminal.message import open_client, origin
from services.cli.terminal.output import Output
from services.cli.terminal.text import count
from services.store import CommitPart, Queue, Store, StoreError
from services.store.model import CERTAIN, parse_certain, trace_context
from services.store.model import records as record
from services.store.pipeline import AsyncClient

RUN_MESSAGES = 1000  # per request
RUN_BYTES = 1 << 20
BATCH_MESSAGES = 10_000  # per commit
BATCH_BYTES = 16 << 20


@click.command()
@click.argument("queue")
@click.argument("body", required=False)
@file_option
@click.option("--lines", is_flag=True, help="send each line of the input as a message")
@click.option("-0", "--null", is_flag=True, help="with --lines: lines end with NUL instead of a line feed")
@click.option("--attr", multiple=True, metavar="KEY=VALUE", help="an attribute of every message; repeatable")
@click.option("--batch-id", metavar="ID", help="store all or nothing, and only once per id within 24 hours")
@store_command
async def put(store: Store, output: Output, queue: str, **given: Any) -> None:
    """Put BODY, or the contents of --file or standard input, into QUEUE.

    Ends with 0 once all messages are durable at the queue's ack level.
    """
    found = await store.catalogue.find(queue)
    source = given_bodies(given["body"], given["file"], _separator(given["lines"], given["null"]))
    encoded = _encoded(source, _attributes(given["attr"], found))
    client, batch = await open_client(store, found), given["batch_id"]
    if batch is None:
        stored = await _put(client, output, found, encoded)
        output.line(f"stored {count(stored, 'message')} in {found.name}")
    else:
        stored = await _put_batch(client, found, encoded, batch)
        output.line(f"batch {batch} is stored in {found.name}: {count(stored, 'message')}")
    if output.as_json:
        output.record({"queue": found.name, "stored": stored, "refused": 0})


def _separator(lines: bool, null: bool) -> bytes | None:
    if null and not lines:
        raise usage("--null requires --lines")
    return (b"\0" if null else b"\n") if lines else None


def _attributes(pairs: tuple[str, ...], queue: Queue) -> dict[str, str]:
    attributes = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise usage(f"--attr must be KEY=VALUE, not {pair!r}")
        if queue.spec.remote is not None and name == CERTAIN and parse_certain(value) is None:
            raise usage(
                f"the attribute {CERTAIN} must be true or false in a transmission queue, not {value!r}"
            )
        attributes[name] = value
    return attributes


async def _encoded(
    runs: AsyncIterator[list[bytes]], attributes: dict[str, str]
) -> AsyncIterator[list[bytes]]:
    """Yield encoded records in runs that fit into one request each."""
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
    """Return the failure of a put that stopped part way, with the number of messages that are stored."""
    if output.as_json:
        output.record({"queue": queue.name, "stored": stored, "refused": refused})
    text = f"{failure} ({count(stored, 'message')} stored before that)"
    if failure.exit is Exit.UNKNOWN:
        text = (
            f"{failure}: {count(stored, 'message')} stored, the next {refused:,} may or may not be; "
            "use --batch-id to repeat without duplicates"
        )
    return failure.after_partial_success(stored, text)


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
        # The id includes the queue's own id: a recreated queue of the same name has not seen the batch. The digest
        # detects another batch under the same id, which would be lost silently. It leaves out the trace context, which
        # differs when a batch is repeated.
        digest = hashlib.sha256(b"".join(map(trace_context.without, batch))).hexdigest()
        await client.commit(
            f"cli:{queue.qid}:{identifier}", [CommitPart(queue, [], batch, origin())], digest=digest
        )
    return len(batch)
