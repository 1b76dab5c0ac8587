"""Implement `penstock rqp send`: `sendMessage` of RQP/cast and RQP/MCA through a transmission queue."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from services.cli.commands.confirmation import Confirmation
from services.cli.documents.bodies import file_option, given_bodies
from services.cli.framework.command import TIMEOUT_S, Options, Seconds, plain_command, with_store
from services.cli.terminal.exits import Exit, Failure, not_found, usage
from services.cli.terminal.message import open_client, origin
from services.cli.terminal.output import Output
from services.store import Queue, Store
from services.store.model import CERTAIN, Protocol
from services.store.model import records as record
from services.store.redis import REPLY_TIMEOUT_S

NUMBER = click.IntRange(0, 0xFFFF_FFFF)


@click.group()
def rqp() -> None:
    """Send messages to queues of other systems."""


@rqp.command()
@click.argument("body", required=False)
@click.option("--key", type=NUMBER, help="target queue, by its key in RQP/cast")
@click.option("--queue-id", type=NUMBER, help="target queue, by its number in RQP/MCA")
@click.option("--queue", metavar="NAME", help="transmission queue, by its name")
@click.option(
    "--reliable/--unreliable",
    "is_certain",
    default=None,
    help="keep until receipt is confirmed, or send once  [as the transmission queue says]",
)
@file_option
@click.option("--wait", "waits", is_flag=True, help="wait until receipt is confirmed, or until it is sent")
@click.option(
    "--timeout",
    type=Seconds(0.1),
    metavar="SECONDS",
    help=f"with --wait: how long  [until an error is reported]; else: for the store to answer  [{TIMEOUT_S:g}]",
)
@plain_command
def send(options: Options, timeout: float | None, **given: Any) -> None:
    """Send BODY, or the contents of --file or standard input, to a queue of another system.

    The message is stored in a transmission queue for the target, preferably one of the same reliability, and an edge
    sends it. Ends with 0 once it is stored, or with --wait once the peer has confirmed it. With --wait, ends with 1 if
    it will not be confirmed, and with 5 if it is not confirmed in time; without --timeout, that is when an attempt has
    failed or no edge has sent the queue's messages for 30 s. The edge continues to try after exit code 5.
    """
    patience = min(timeout or TIMEOUT_S, TIMEOUT_S)
    values = {"timeout": timeout, **given}
    asyncio.run(with_store(options, patience, _send, values, min(patience, REPLY_TIMEOUT_S)))


async def _send(
    store: Store,
    output: Output,
    *,
    body: str | None,
    file: Path | None,
    is_certain: bool | None,
    **given: Any,
) -> None:
    queue = await _transmission_queue(store, is_certain, given["key"], given["queue_id"], given["queue"])
    assert queue.spec.remote is not None
    attributes = {} if is_certain is None else {CERTAIN: is_certain}
    encoded = await _encoded(body, file, attributes)
    if given["waits"]:
        certain = queue.spec.remote.is_certain(attributes)
        await Confirmation(store, output, queue, certain).wait(encoded, given["timeout"])
        return
    refused = await (await open_client(store, queue)).publish(queue, [encoded], origin())
    if refused:
        raise refused[0][1]
    output.line(f"stored in {queue.name}")
    if output.as_json:
        output.record({"queue": queue.name, "state": "stored"})


async def _encoded(body: str | None, file: Path | None, attributes: dict[str, bool]) -> bytes:
    [message] = [message async for run in given_bodies(body, file) for message in run]
    try:
        return record.encode(message, attributes)
    except ValueError as error:
        raise usage(str(error)) from None


async def _transmission_queue(
    store: Store, is_certain: bool | None, key: int | None, queue_id: int | None, name: str | None
) -> Queue:
    """Return the transmission queue that the options select. Raises Failure, QueueUnknown."""
    if [key, queue_id, name].count(None) != 2:
        raise usage("name the target with one of --key, --queue-id and --queue")
    if name is not None:
        queue = await store.catalogue.find(name)
        if queue.spec.remote is None:
            raise usage(f"queue {name!r} is no transmission queue: use `penstock put`")
        return queue
    if key is not None:
        return await _leading_to(store, is_certain, Protocol.CAST, key, "key")
    assert queue_id is not None
    return await _leading_to(store, is_certain, Protocol.MCA, queue_id, "queue-id")


async def _leading_to(
    store: Store, is_certain: bool | None, protocol: Protocol, number: int, option: str
) -> Queue:
    """Return a transmission queue for the target, preferably of the same reliability (default: yes) and not paused."""
    wanted = is_certain is not False

    def rank(queue: Queue) -> tuple[bool, bool]:
        assert queue.spec.remote is not None
        return queue.spec.remote.reliable is not wanted, queue.spec.paused

    found = sorted(await store.catalogue.leading_to(protocol, number), key=rank)
    if not found:
        raise not_found(
            f"no transmission queue leads to {option} {number} of {protocol}: create one with `penstock queue create "
            f"NAME --remote-protocol {protocol} --remote-{option} {number}`"
        )
    best = [queue for queue in found if rank(queue) == rank(found[0])]
    if len(best) > 1:
        names = ", ".join(sorted(queue.name for queue in best))
        raise Failure(Exit.USAGE, "several_queues", f"{names} lead there: choose one with --queue")
    return best[0]
