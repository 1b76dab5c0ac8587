"""Implement `penstock dead`: list, show, redrive, purge; `dead_letter_files` has export and import."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

import click

from services.cli.commands.dead_letter_files import export, import_
from services.cli.documents.selection import filtered, reasons_of, require_matches, selection
from services.cli.framework.command import store_command
from services.cli.terminal.exits import Failure, failure_of, not_found
from services.cli.terminal.message import encoded_body
from services.cli.terminal.output import Advance, Output
from services.cli.terminal.streams import sync, write_all
from services.cli.terminal.text import PREVIEW_OCTETS, age, count, preview
from services.store import DeadLetter, DeadLetters, Filter, Queue, Store, StoreError
from services.store.deadletters import PAGE, WHOLE, Pace, redrive_steps

RATE = re.compile(r"^(\d+)/s$")


@click.group()
def dead() -> None:
    """Inspect, redrive and purge dead letters."""


dead.add_command(export)
dead.add_command(import_)


async def _letters(store: Store, name: str) -> tuple[Queue, DeadLetters]:
    queue = await store.catalogue.find(name)
    return queue, DeadLetters(store.get_domain(queue.domain), queue)


# Inspecting --------------------------------------------------------------------------------------------------------


@dead.command("list")
@click.argument("queue")
@click.option(
    "-n", "limit", type=click.IntRange(0), default=100, show_default=True, help="maximum number; 0: all"
)
@filtered
@store_command
async def list_(store: Store, output: Output, queue: str, limit: int, letter_filter: Filter) -> None:
    """List dead letters of QUEUE, oldest first."""
    _, letters = await _letters(store, queue)
    await letters.check_reasons(letter_filter.reasons)
    now_ms = await store.now_ms()
    rows: list[list[str]] = []
    octets = WHOLE if output.as_json else PREVIEW_OCTETS
    async for letter in letters.matching(letter_filter, octets=octets):
        if limit and len(rows) == limit:
            output.note(f"only the first {limit:,} are shown; use -n 0 for all")
            break
        if output.as_json:
            output.record(_described(letter))
        rows.append(_row(letter, now_ms))
    if not output.as_json:
        output.table(("id", "died#", "reason", "delivered#", "failed#", "origin", "error", "body"), rows)


def _row(letter: DeadLetter, now_ms: int) -> list[str]:
    died = age(now_ms - letter.died_ms)
    counts = (f"{letter.acquired:,}", f"{letter.failed:,}")
    return [letter.id, died, letter.reason, *counts, letter.origin, letter.error, preview(letter.body)]


def _described(letter: DeadLetter) -> dict[str, Any]:
    fields = asdict(letter)
    del fields["size"]
    return {**fields, **encoded_body(fields.pop("body"))}


@dead.command()
@click.argument("queue")
@click.argument("id")
@click.option("--raw", is_flag=True, help="write only the body, unchanged")
@store_command
async def show(store: Store, output: Output, queue: str, id: str, raw: bool) -> None:
    """Show one dead letter with all its fields."""
    _, letters = await _letters(store, queue)
    letter = await letters.find(id)
    if letter is None:
        raise not_found(f"queue {queue!r} has no dead letter {id!r}; see `penstock dead list {queue}`")
    if raw and not output.as_json:
        await write_all(sys.stdout.fileno(), letter.body)
        sync(sys.stdout.fileno())
    elif output.as_json:
        output.record(_described(letter))
    else:
        output.pairs(_shown(letter, await store.now_ms()))


def _shown(letter: DeadLetter, now_ms: int) -> list[tuple[str, str]]:
    pairs = []
    for name, value in asdict(letter).items():
        if name == "size":
            continue
        if name.endswith("_ms"):
            pairs.append((name.removesuffix("_ms"), f"{age(now_ms - value)} ago" if value else "never"))
        elif name == "attributes":
            pairs += [(f"attribute {key}", str(item)) for key, item in value.items()]
        elif name == "body":
            pairs.append((f"body, {count(len(value), 'byte')}", preview(value, width=2000)))
        else:
            pairs.append((name, str(value)))
    return pairs


def _per_second(_: click.Context, __: click.Parameter, value: str | None) -> int:
    """Parse the rate; 0 means no limit."""
    if value is None:
        return 0
    found = RATE.match(value)
    if not found or int(found[1]) == 0:
        raise click.BadParameter("write it as messages per second, such as 100/s")
    return int(found[1])


# Redriving and purging ---------------------------------------------------------------------------------------------


async def _number(output: Output, letters: DeadLetters, letter_filter: Filter, everything: bool) -> int:
    """Return how many letters are selected; the total is known without reading them."""
    return await letters.count() if everything else (await reasons_of(output, letters, letter_filter)).total()


def _dry_run(output: Output, verb: str, reasons: Counter[str]) -> None:
    if output.as_json:
        output.record({"dry_run": True, "matching": reasons.total(), "reasons": dict(reasons)})
        return
    output.table(("reason", "dead letters#"), [(reason, f"{n:,}") for reason, n in reasons.most_common()])
    output.line(f"{count(reasons.total(), 'dead letter')} would be {verb}")


@dead.command()
@click.argument("queue")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="all dead letters")
@filtered
@click.option("--to", "target", metavar="QUEUE", help="redrive into another queue of the same domain")
@click.option("--rate", callback=_per_second, metavar="N/s", help="maximum messages per second")
@click.option("--dry-run", is_flag=True, help="only count them by reason")
@store_command
async def redrive(
    store: Store, output: Output, queue: str, everything: bool, letter_filter: Filter, **given: Any
) -> None:
    """Put dead letters back at the end of QUEUE.

    Each letter moves atomically, and its delivery counts start from zero. The command can be stopped at any time;
    the same command continues with the letters that are left. A dry run validates the target too, and fails if that
    is full, for example.
    """
    letter_filter = selection(everything, letter_filter)
    source, letters = await _letters(store, queue)
    letter_filter = await letters.until_now(letter_filter)  # later dead letters were not counted
    goal = await store.catalogue.find(given["target"]) if given["target"] is not None else source
    if given["dry_run"]:
        _dry_run(output, "redriven", await reasons_of(output, letters, letter_filter))
        await letters.try_target(goal)
        return
    number = await _number(output, letters, letter_filter, everything)
    require_matches(number, queue)
    unknown = max(0, len(set(letter_filter.ids)) - number)
    with output.progress("redriven", number) as advance:
        moved, missing, failure = await _redrive(letters, letter_filter, goal, given["rate"], advance)
    if unknown:
        output.note(f"{count(unknown, 'id')} not found")
    output.line(f"redrove {count(moved, 'dead letter')} into {goal.name}")
    if output.as_json:
        output.record({"queue": queue, "to": goal.name, "redriven": moved, "missing": missing + unknown})
    if failure is not None:
        left = number - moved - missing
        raise Failure(
            failure.exit, failure.label, f"{failure} ({left:,} left: run the same command again to continue)"
        )


async def _redrive(
    letters: DeadLetters, letter_filter: Filter, goal: Queue, rate: int, advance: Advance
) -> tuple[int, int, Failure | None]:
    """Return how many letters were moved, how many were gone already, and the error that stopped it, if any."""
    moved, missing = 0, 0
    try:
        async for done in redrive_steps(letters, letter_filter, goal, Pace(rate)):
            moved, missing = moved + done.moved, missing + done.missing
            advance(done.moved + done.missing)
            if done.stopped is not None:
                return moved, missing, failure_of(done.stopped)
    except StoreError as error:
        return moved, missing, failure_of(error)
    return moved, missing, None


@dead.command()
@click.argument("queue")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="all dead letters")
@filtered
@click.option("--yes", is_flag=True, help="do not ask for confirmation")
@click.option("--dry-run", is_flag=True, help="only count them by reason")
@store_command
async def purge(
    store: Store, output: Output, queue: str, everything: bool, letter_filter: Filter, **given: Any
) -> None:
    """Permanently delete dead letters.

    Without --yes, asks to type the queue's name.
    """
    letter_filter = selection(everything, letter_filter)
    source, letters = await _letters(store, queue)
    letter_filter = await letters.until_now(letter_filter)  # later dead letters were not counted
    if given["dry_run"]:
        _dry_run(output, "purged", await reasons_of(output, letters, letter_filter))
        return
    number = await _number(output, letters, letter_filter, everything)
    require_matches(number, queue)
    what = f"{count(number, 'dead letter')} of {source.name}"
    if not given["yes"]:
        output.confirm_deletion(what, source.name)
    purged = 0
    with output.progress("purged", number) as advance:
        async for page in letters.pages(letter_filter, PAGE):
            purged += await letters.purge(page)
            advance(len(page))
    output.line(f"purged {count(purged, 'dead letter')} of {source.name}")
    if output.as_json:
        output.record({"queue": source.name, "purged": purged})
