"""List every subcommand of `penstock`, with at least one successful call of each.

A leaf is a command without subcommands; `serve` has one for each edge. `LEAVES` comes from click, the rows are here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import click

from services.cli.main import penstock
from services.cli.terminal.exits import Exit
from services.kit.dead_letter_formats import ExportedDeadLetter, formats
from services.kit.edge import edges
from services.store import INTERNAL_CLIENT, DeadLetters, QueueSpec, Source, Store
from services.store.log.log import Log, LogSpec
from services.store.model import records as record
from services.store.model.keys import RegistryKeys
from services.store.model.peer import PeerSpec
from services.store.model.spec import LOG_DOMAIN
from tests.cli.commands.test_ring_status import RING
from tests.cli.shell import Shell
from tests.reports import report

NAME, OLD, LOST, AWAY, FRIEND = "注文", "古い", "予約", "送信", "友達"
DOCUMENTS = {
    "queues.yaml": "apiVersion: penstock.dev/v1alpha1\nkind: Queue\nmetadata: {name: 新着}\n",
    "peers.yaml": "apiVersion: penstock.dev/v1alpha1\nkind: Peer\nmetadata: {name: 店}\n"
    "spec: {protocol: rqp-mca, addresses: [10.0.0.7]}\n",
}
LETTERS = "letters.bin"
SERVICES = ("up", "sysv", "console", "serve", "analytics")  # run until a signal, or start Java


@dataclass(frozen=True, slots=True)
class Row:
    """A call of a command, in the store that `fill` creates."""

    words: str  # `{letter}` is the id of a dead letter
    status: int = Exit.OK
    writes: bool = True  # a result on standard output

    def arguments(self, known: Mapping[str, str]) -> list[str]:
        return [word.format(**known) for word in self.words.split()]


MISSING, REFUSED, USAGE = Exit.NOT_FOUND, Exit.REFUSED, Exit.USAGE
ROWS = [
    Row("--help"),
    Row("queue list"),
    Row(f"queue show {NAME}"),
    Row("queue create 新しい"),
    Row(f"queue create {NAME}", REFUSED, False),
    Row("queue apply --file queues.yaml"),
    Row("queue apply --file -", USAGE, False),  # standard input is empty
    Row(f"queue purge {OLD} --yes"),
    Row(f"queue release {LOST}"),
    Row(f"queue release {NAME}", REFUSED, False),
    Row(f"queue delete {OLD} --yes"),
    Row("queue delete missing --yes", MISSING, False),
    Row("peer apply --file peers.yaml"),
    Row("peer list"),
    Row(f"peer show {FRIEND}"),
    Row(f"peer delete {FRIEND}"),
    Row(f"put {NAME} {NAME}"),
    Row(f"peek {NAME}"),
    Row(f"get {NAME}"),
    Row("get missing", MISSING, False),
    Row(f"dead list {NAME}"),
    Row(f"dead show {NAME} {{letter}}"),
    Row(f"dead export {NAME} --garbage-msg"),
    Row(f"dead import {NAME} --garbage-msg --file {LETTERS}"),
    Row(f"dead import {NAME}", USAGE, False),  # it requires a format
    Row(f"dead purge {NAME} {{letter}} --yes"),
    Row(f"dead redrive {NAME} --all"),
    Row(f"dead redrive {OLD} --all", MISSING, False),
    Row("rqp send --queue-id 7 x"),
    Row("rqp send missing x", USAGE, False),
    Row("log show"),
    Row("ring status"),
    Row("report"),
    Row("config"),
    Row("doctor"),
    Row("store init"),
    Row("store rights"),
]

FORMS = [  # with every flag that may change the output
    Row("queue apply --file queues.yaml --dry-run"),
    Row(f"queue purge {OLD} --dry-run"),
    Row("peer apply --file peers.yaml --dry-run"),
    Row(f"put {NAME} --lines --file queues.yaml"),
    Row(f"put {NAME} --lines -0 --file queues.yaml"),
    Row(f"peek {NAME} --raw"),
    Row(f"get {NAME} --no-ack"),
    Row(f"get {NAME} -0 --all"),
    Row(f"dead show {NAME} {{letter}} --raw"),
    Row(f"dead purge {NAME} --all --dry-run"),
    Row(f"dead redrive {NAME} --all --dry-run"),
    Row("rqp send --queue-id 7 --reliable x"),
    Row("rqp send --queue-id 7 --wait --timeout 0.2 x", Exit.UNKNOWN),
    Row("doctor --production"),
    Row("store init --accept-loss"),
    Row("store rights --apply --password-file queues.yaml"),
]


def leaves(command: click.Command = penstock, path: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from leaves(found, (*path, name))
    elif path == ("serve",):
        yield from (f"serve {edge}" for edge in edges())
    else:
        yield " ".join(path)


LEAVES = frozenset(leaves())


def flags(command: click.Command = penstock, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the leaf and name of every flag of its own; flags of `queue create` are fields of the document."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from flags(found, (*path, name))
    elif path != ("queue", "create"):
        for option in command.get_params(context):
            if (
                isinstance(option, click.Option)
                and option.is_flag
                and not {"--json", "--help"} & {*option.opts}
            ):
                yield " ".join(path), option.opts[0]


def leaf_of(words: str) -> str:
    """Return the leaf of this command line; '' for none."""
    return next((leaf for leaf in LEAVES if f"{words} ".startswith(f"{leaf} ")), "")


def fill(shell: Shell) -> dict[str, str]:
    """Create in an empty store, and in the shell's folder, what the rows need; return values for their placeholders."""
    for name, text in DOCUMENTS.items():
        shell.write(name, text)
    encoded = formats()["garbage-msg"].encode(ExportedDeadLetter(NAME.encode(), "rejected"))
    (shell.folder / LETTERS).write_bytes(encoded)
    return {"letter": shell.with_store(_filled)}


async def _filled(store: Store) -> str:
    """Return the id of a dead letter."""
    await store.initialise()
    queue, _ = await store.catalogue.declare(NAME, QueueSpec(), "test")
    await store.catalogue.declare(OLD, QueueSpec(), "test")
    await store.catalogue.declare(LOST, QueueSpec(), "kubernetes shop/orders")
    remote: dict[str, Any] = {"remote": {"protocol": "rqp-mca", "queueId": 7}}
    await store.catalogue.declare(AWAY, QueueSpec.model_validate(remote), "test")
    peer = PeerSpec.model_validate({"protocol": "rqp-mca", "addresses": ["10.0.0.7"]})
    await store.peers.apply(FRIEND, peer, "test")
    pipe = store.open_domain().pipe
    await pipe.ready()
    for body in (NAME.encode(), b"x"):
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        pipe.messages.bury(
            Source(INTERNAL_CLIENT), queue, record.encode(body), "test", "rejected", NAME, answer.set_result
        )
        assert await answer is None
    await Log(store.get_domain(LOG_DOMAIN), LogSpec("fsync")).declare()
    for node in RING:
        await store.ring_nodes.put(7001, node["name"], node)
    one = report()
    await store.registry.link.call("SET", RegistryKeys().report, b"%d " % one.now_ms + one.encode())
    letters = DeadLetters(store.get_domain(queue.domain), queue)
    return (await anext(aiter(letters.matching()))).id
