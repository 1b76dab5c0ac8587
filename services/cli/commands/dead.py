"""penstock dead: list, show, redrive, purge; export and import are in `letters`."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

import click

from services.cli.commands.letters import export, import_
from services.cli.documents.selection import filtered, must_be_some, reasons_of, selection
from services.cli.framework.command import store_command
from services.cli.terminal.exits import Failure, failure_of, not_found, usage
from services.cli.terminal.message import encoded_body
from services.cli.terminal.output import Advance, Output
from services.cli.terminal.streams import sync, write_all
from services.cli.terminal.text import PREVIEW_OCTETS, age, count, preview
from services.store import DeadLetter, DeadLetters, Filter, Queue, Store, StoreError
from services.store.deadletters import PAGE, WHOLE, Pace, redrive_steps

RATE = re.compile(r"^(\d+)/s$")


@click.group()
def dead() -> None:
    """Look at dead letters, bring them back, remove them."""


dead.add_command(export)
dead.add_command(import_)


async def _letters(store: Store, name: str) -> tuple[Queue, DeadLetters]:
    queue = await store.catalogue.find(name)
    return queue, DeadLetters(store.get_domain(queue.domain), queue)


# Looking -----------------------------------------------------------------------------------------------------------


@dead.command("list")
@click.argument("queue")
@click.option(
    "-n", "limit", type=click.IntRange(0), default=100, show_default=True, help="at most so many; 0: all"
)
@filtered
@store_command
async def list_(store: Store, output: Output, queue: str, limit: int, wanted: Filter) -> None:
    """Dead letters of QUEUE, the oldest first."""
    _, letters = await _letters(store, queue)
    await letters.check_reasons(wanted.reasons)
    now_ms = await store.now_ms()
    rows: list[list[str]] = []
    octets = WHOLE if output.as_json else PREVIEW_OCTETS
    async for letter in letters.matching(wanted, octets=octets):
        if limit and len(rows) == limit:
            output.note(f"only the first {limit:,} are shown: say -n 0 for all")
            break
        if output.as_json:
            output.record(_described(letter))
        rows.append(_row(letter, now_ms))
    if not output.as_json:
        output.table(("id", "died#", "reason", "given out#", "failed#", "origin", "error", "body"), rows)


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
@click.option("--raw", is_flag=True, help="only the body, as it is")
@store_command
async def show(store: Store, output: Output, queue: str, id: str, raw: bool) -> None:
    """All that is known of one dead letter."""
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
    """0 = no limit"""
    if value is None:
        return 0
    found = RATE.match(value)
    if not found or int(found[1]) == 0:
        raise click.BadParameter("write it as messages a second, as in 100/s")
    return int(found[1])


# Bringing back, removing -------------------------------------------------------------------------------------------


async def _number(output: Output, letters: DeadLetters, wanted: Filter, everything: bool) -> int:
    """How many are meant; how many there are in all nobody has to count."""
    return await letters.count() if everything else (await reasons_of(output, letters, wanted)).total()


def _dry_run(output: Output, verb: str, reasons: Counter[str]) -> None:
    if output.as_json:
        output.record({"dry_run": True, "matching": reasons.total(), "reasons": dict(reasons)})
        return
    output.table(("reason", "dead letters#"), [(reason, f"{n:,}") for reason, n in reasons.most_common()])
    output.line(f"{count(reasons.total(), 'dead letter')} would be {verb}")


@dead.command()
@click.argument("queue")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="all of them")
@filtered
@click.option("--to", "target", metavar="QUEUE", help="into another queue of the same domain")
@click.option("--rate", callback=_per_second, metavar="N/s", help="at most so many a second")
@click.option("--dry-run", is_flag=True, help="only say how many, and why they had died")
@store_command
async def redrive(
    store: Store, output: Output, queue: str, everything: bool, wanted: Filter, **given: Any
) -> None:
    """Put dead letters back into QUEUE.

    At its end, each in one step, with their counts begun anew. It may be stopped at any time: the same command
    goes on with what is left. A dry run also fails where it could not begin, as with a queue that is full.
    """
    wanted = selection(everything, wanted)
    source, letters = await _letters(store, queue)
    wanted = await letters.until_now(wanted)  # what dies from here on was not counted
    goal = await store.catalogue.find(given["target"]) if given["target"] is not None else source
    if given["dry_run"]:
        _dry_run(output, "redriven", await reasons_of(output, letters, wanted))
        await letters.try_target(goal)
        return
    number = await _number(output, letters, wanted, everything)
    must_be_some(number, queue)
    unknown = max(0, len(set(wanted.ids)) - number)
    with output.progress("redriven", number) as advance:
        moved, missing, failure = await _redrive(letters, wanted, goal, given["rate"], advance)
    if unknown:
        output.note(f"{count(unknown, 'id')} not found")
    output.line(f"redrove {count(moved, 'dead letter')} into {goal.name}")
    if output.as_json:
        output.record({"queue": queue, "to": goal.name, "redriven": moved, "missing": missing + unknown})
    if failure is not None:
        left = number - moved - missing
        raise Failure(
            failure.exit, failure.label, f"{failure} ({left:,} left: the same command goes on with them)"
        )


async def _redrive(
    letters: DeadLetters, wanted: Filter, goal: Queue, rate: int, advance: Advance
) -> tuple[int, int, Failure | None]:
    """How many were moved, how many somebody else had taken out, and why it stopped early, if it did."""
    moved, missing = 0, 0
    try:
        async for done in redrive_steps(letters, wanted, goal, Pace(rate)):
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
@click.option("--all", "everything", is_flag=True, help="all of them")
@filtered
@click.option("--yes", is_flag=True, help="without asking")
@click.option("--dry-run", is_flag=True, help="only say how many, and why they had died")
@store_command
async def purge(
    store: Store, output: Output, queue: str, everything: bool, wanted: Filter, **given: Any
) -> None:
    """Remove dead letters for good.

    Without --yes the queue's name has to be typed in.
    """
    wanted = selection(everything, wanted)
    source, letters = await _letters(store, queue)
    wanted = await letters.until_now(wanted)  # what dies from here on was not counted
    if given["dry_run"]:
        _dry_run(output, "purged", await reasons_of(output, letters, wanted))
        return
    number = await _number(output, letters, wanted, everything)
    must_be_some(number, queue)
    what = f"{count(number, 'dead letter')} of {source.name}"
    if not given["yes"] and not output.ask(
        f"{what} will be gone for good. Type the queue's name:", source.name
    ):
        raise usage(f"{what} would be gone for good: say --yes, or type the queue's name at a terminal")
    purged = 0
    with output.progress("purged", number) as advance:
        async for page in letters.pages(wanted, PAGE):
            purged += await letters.purge(page)
            advance(len(page))
    output.line(f"purged {count(purged, 'dead letter')} of {source.name}")
    if output.as_json:
        output.record({"queue": source.name, "purged": purged})
