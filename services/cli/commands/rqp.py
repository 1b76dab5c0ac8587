"""penstock rqp send: the `sendMessage` of both RQPs, through a transmission queue."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from services.cli.commands.confirmation import Confirmation
from services.cli.documents.bodies import file_option, given_bodies
from services.cli.framework.command import TIMEOUT_S, Options, Seconds, plain_command, with_store
from services.cli.terminal.exits import Exit, Failure, not_found, usage
from services.cli.terminal.message import asker_of, origin
from services.cli.terminal.output import Output
from services.store import Queue, Store
from services.store.model import CERTAIN, Protocol
from services.store.model import records as record
from services.store.redis import REPLY_TIMEOUT_S

NUMBER = click.IntRange(0, 0xFFFF_FFFF)


@click.group()
def rqp() -> None:
    """Send to queues of other systems."""


@rqp.command()
@click.argument("body", required=False)
@click.option("--key", type=NUMBER, help="the queue there, by its key in RQP/cast")
@click.option("--queue-id", type=NUMBER, help="the queue there, by its number in RQP/MCA")
@click.option("--queue", metavar="NAME", help="the transmission queue here, by its name")
@click.option(
    "--reliable/--unreliable",
    "is_certain",
    default=None,
    help="kept until its receipt is confirmed, or sent once  [as the transmission queue says]",
)
@file_option
@click.option("--wait", "waits", is_flag=True, help="until its receipt is confirmed, or it is sent")
@click.option(
    "--timeout",
    type=Seconds(0.1),
    metavar="SECONDS",
    help=f"with --wait, how long  [until an error is reported]; how long the store may take to answer  [{TIMEOUT_S:g}]",
)
@plain_command
def send(options: Options, timeout: float | None, **given: Any) -> None:
    """Send a message to a queue of another system.

    That is BODY; without it, what --file or standard input holds. It is put into the transmission queue that leads to
    the queue there, best one as reliable as it is to be, and carried on by an edge. Ends with 0 once it is stored, with
    --wait once the peer has confirmed it; with 1 if that will not come, with 5 if it did not come in time, or, without
    --timeout, when an attempt has failed or no edge has carried the queue's messages for 30 s: it is tried again all
    the same.
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
        await Confirmation(store, output, queue, certain).of(encoded, given["timeout"])
        return
    refused = await (await asker_of(store, queue)).publish(queue, [encoded], origin())
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
    """The one that is meant. Raises Failure, QueueUnknown."""
    if [key, queue_id, name].count(None) != 2:
        raise usage("say where to: one of --key, --queue-id and --queue")
    if name is not None:
        queue = await store.catalogue.find(name)
        if queue.spec.remote is None:
            raise usage(f"queue {name!r} leads to no other system: use `penstock put`")
        return queue
    if key is not None:
        return await _leading_to(store, is_certain, Protocol.CAST, key, "key")
    assert queue_id is not None
    return await _leading_to(store, is_certain, Protocol.MCA, queue_id, "queue-id")


async def _leading_to(
    store: Store, is_certain: bool | None, protocol: Protocol, number: int, option: str
) -> Queue:
    """Best one that is as reliable as the message is to be, and not paused; who does not say means reliable."""
    wanted = is_certain is not False

    def rank(queue: Queue) -> tuple[bool, bool]:
        assert queue.spec.remote is not None
        return queue.spec.remote.reliable is not wanted, queue.spec.paused

    found = sorted(await store.catalogue.leading_to(protocol, number), key=rank)
    if not found:
        raise not_found(
            f"no transmission queue leads to {option} {number} of {protocol}: make one with `penstock queue create "
            f"NAME --remote-protocol {protocol} --remote-{option} {number}`"
        )
    best = [queue for queue in found if rank(queue) == rank(found[0])]
    if len(best) > 1:
        names = ", ".join(sorted(queue.name for queue in best))
        raise Failure(Exit.USAGE, "several_queues", f"{names} lead there: say which one with --queue")
    return best[0]
