"""Implement `penstock queue`: create, list, show, delete, release, apply; `queue_purge` has purge."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from services.cli.commands.queue_purge import purge
from services.cli.documents.applying import apply_file, file_option
from services.cli.documents.resource_owner import RECREATED, warn_of_resource
from services.cli.documents.spec_options import Given, spec_from, spec_options
from services.cli.framework.command import store_command
from services.cli.terminal.exits import Exit, Failure, failure_of
from services.cli.terminal.output import Output
from services.cli.terminal.text import age, count
from services.store import Queue, Store
from services.store.catalogue import BulkStatsResult
from services.store.model import (
    Listed,
    QueueNotEmpty,
    StoreFault,
    check_name,
    is_internal,
    is_of_a_resource,
    to_document,
)

OWNER = "cli"
NUMBERS = ("ready", "in_flight", "dead_letters", "added", "acked")
COLUMNS = (
    "queue",
    "ready#",
    "in flight#",
    "dead#",
    "added#",
    "acked#",
    "oldest#",
    "ack level",
    "owner",
    "",
)


@click.group()
def queue() -> None:
    """Create, inspect, purge and delete queues."""


queue.add_command(purge)


def checked_name(name: str) -> str:
    """Return the name. Raises Failure if no queue may have it."""
    try:
        return check_name(name)
    except ValueError as error:
        raise Failure(Exit.USAGE, "bad_name", str(error)) from None


@queue.command()
@click.argument("name")
@spec_options
@store_command
async def create(store: Store, output: Output, name: str, **given: Given) -> None:
    """Create the queue NAME.

    Fails if it exists; `queue apply` changes existing queues. Without --ack-level the queue gets the strictest level
    that the store supports.
    """
    made, _ = await store.catalogue.declare(checked_name(name), spec_from(given), OWNER)
    output.line(f"created {made.name} (ack level {made.spec.ack_level})")
    if output.as_json:
        output.record({"change": "created", **_description(made)})


# Inspecting --------------------------------------------------------------------------------------------------------


def _description(queue: Queue) -> dict[str, Any]:
    return {
        "name": queue.name,
        "domain": queue.domain,
        "owner": queue.owner,
        "spec": to_document(queue.name, queue.spec)["spec"],
        "ackLevel": queue.spec.ack_level,
    }


def _matches(one: Queue, pattern: str) -> bool:
    if is_internal(one.name) and not is_internal(pattern):
        return False
    return fnmatch.fnmatchcase(one.name, pattern)


@queue.command("list")
@click.argument("pattern", default="*")
@store_command
async def list_(store: Store, output: Output, pattern: str) -> None:
    """List the queues and their counters.

    PATTERN selects names as in a shell: 'orders-*'. The internal queues of ring nodes are listed only for a pattern
    such as 'ring/*'. If a domain is unreachable, its queues are listed without counters and the command ends with 3.
    """
    unreadable: dict[str, str] = {}
    found = [
        one async for one in store.listing.queues(unreadable=unreadable.__setitem__) if _matches(one, pattern)
    ]
    results = await store.listing.stats_of(found)
    domains = {one.name: one.domain for one in found}
    unreachable: dict[str, list[str]] = {}  # unreachable domains and their listed queues
    for name, error in results.errors.items():
        if isinstance(error, StoreFault):  # a damaged queue does not hide the others
            unreadable[name] = f"queue {name!r}: {error}"
        else:
            unreachable.setdefault(domains[name], []).append(name)
    for name, why in sorted(unreadable.items()):
        if fnmatch.fnmatchcase(name, pattern):
            output.note(f"skipped: {why}")
            if output.as_json:
                output.record({"name": name, "unreadable": why})
    listed = [
        one
        for one in sorted(found, key=lambda one: one.name)
        if one.name in results.stats or one.name in unreachable.get(one.domain, ())
    ]
    if output.as_json:
        for one in listed:
            output.record({**_description(one), **_stats(one, results)})
    else:
        output.table(COLUMNS, [_row(one, results.stats.get(one.name)) for one in listed])
    if unreachable:
        raise _unreachable(unreachable, results)


def _stats(queue: Queue, results: BulkStatsResult) -> dict[str, Any]:
    stats = results.stats.get(queue.name)
    return {"unreachable": str(results.errors[queue.name])} if stats is None else {"stats": stats}


def _unreachable(unreachable: Mapping[str, list[str]], results: BulkStatsResult) -> Failure:
    """Return the failure of a list that lacks some domains: the first error's exit code, a line per domain."""
    errors = {domain: results.errors[names[0]] for domain, names in unreachable.items()}
    lines = [
        f"{count(len(unreachable[domain]), 'queue')} of domain {domain!r} unreachable: {error}"
        for domain, error in sorted(errors.items())
    ]
    failure = failure_of(next(iter(errors.values())))
    return Failure(failure.exit, failure.label, "\n".join(lines))


def _row(queue: Queue, stats: dict[str, Any] | None) -> list[str]:
    """Return the table row of a queue. stats: None if the queue's domain is unreachable."""
    numbers, state = [""] * (len(NUMBERS) + 1), f"domain {queue.domain!r} is unreachable"
    if stats is not None:
        oldest = age(stats["oldest_age_ms"]) if stats["oldest_age_ms"] else ""
        numbers = [*(f"{stats[name]:,}" for name in NUMBERS), oldest]
        state = "paused" if queue.spec.paused else stats["condition"]
    return [queue.name, *numbers, queue.spec.ack_level, queue.owner, state]


@queue.command()
@click.argument("name")
@store_command
async def show(store: Store, output: Output, name: str) -> None:
    """Show one queue's document and counters."""
    found, unreadable = await store.catalogue.find_leniently(name)
    stats = await store.listing.stats(found)
    if unreadable:
        output.note(unreadable)
        if output.as_json:
            output.record({"name": name, "unreadable": unreadable, "stats": stats})
        else:
            output.pairs([("owner", found.owner), *_shown(found, stats)])
        return
    if output.as_json:
        output.record({**_description(found), "stats": stats})
        return
    output.document(to_document(found.name, found.spec))
    output.line("")
    pairs = [("owner", found.owner), ("ack level", found.spec.ack_level), *_shown(found, stats)]
    output.pairs(pairs, prefix="# ")  # so that `queue apply` reads what this prints


def _shown(queue: Queue, stats: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in stats.items():
        if name == "reserved_by" and not value and _is_shared(queue):
            yield "reserved by", "shared (exclusive: false): its RQP/MCA consumers are not shown"
        elif name.endswith("_ms"):
            yield name.removesuffix("_ms").replace("_", " "), age(value)
        else:
            yield name.replace("_", " "), f"{value:,}" if isinstance(value, int) else value


def _is_shared(queue: Queue) -> bool:
    """Return whether connections share the queue; the store does not record those (rqp_mca.md 2.3)."""
    binding = queue.spec.bindings.rqp_mca
    return binding.queue_id is not None and not binding.exclusive


# Changing ----------------------------------------------------------------------------------------------------------


@queue.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--yes", is_flag=True, help="delete its messages and dead letters too, without asking")
@store_command
async def delete(store: Store, output: Output, names: tuple[str, ...], yes: bool) -> None:
    """Delete queues.

    A queue with messages or dead letters needs --yes, or its name typed in.
    """
    for name in names:
        found, _ = await store.catalogue.find_leniently(name)
        warn_of_resource(output, "queue", name, found.owner, RECREATED)
        lost = await _delete(store, output, found, yes)
        output.line(f"deleted {name}" + (f" with {count(lost, 'message')}" if lost else ""))
        if output.as_json:
            output.record({"change": "deleted", "name": name, "messages": lost})


async def _delete(store: Store, output: Output, found: Queue, yes: bool) -> int:
    if yes:
        return await store.catalogue.delete(found)
    try:
        return await store.catalogue.delete(found, if_empty=True)
    except QueueNotEmpty as error:
        if output.ask(f"{error}. Type the queue's name to delete them too:", found.name):
            return await store.catalogue.delete(found)
        raise QueueNotEmpty(f"{error}: take them out first, or use --yes to delete them too") from None


@queue.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@store_command
async def release(store: Store, output: Output, names: tuple[str, ...]) -> None:
    """Release queues from Kubernetes resources that no longer exist.

    The queue and its messages stay, and a Queue resource of the same name can then claim them. If the previous
    operator still runs, it takes the queue back within a minute.
    """
    for name in names:
        found, _ = await store.catalogue.find_leniently(name)
        if not is_of_a_resource(found.owner):
            text = (
                f"queue {name!r} belongs to {found.owner!r} and to no Kubernetes resource: a Queue of the same name "
                "can claim it without this command"
            )
            raise Failure(Exit.REFUSED, "not_owned", text)
        if not await store.catalogue.release(Listed(name, found.qid, found.owner)):
            raise Failure(
                Exit.REFUSED,
                "not_owned",
                f"the owner of queue {name!r} has just changed: check it and try again",
            )
        output.line(f"released {name}, which belonged to {found.owner}")
        if output.as_json:
            output.record({"change": "released", "name": name, "owner": found.owner})


@queue.command()
@file_option(Path("queues.yaml"))
@click.option("--dry-run", is_flag=True, help="only show what would change")
@store_command
async def apply(store: Store, output: Output, file: Path, dry_run: bool) -> None:
    """Create or change every queue and peer of a YAML file.

    The file is a stream of Queue and Peer documents. All are checked before the first change is made. Queues and peers
    that are not in the file stay as they are.
    """
    await apply_file(store, output, file, dry_run)
