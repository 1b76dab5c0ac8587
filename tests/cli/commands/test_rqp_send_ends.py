"""Test every failure of `penstock rqp send --wait`, on a store without edges (docs/cli.md, rqp send)."""

from __future__ import annotations

import asyncio
import json
import signal
import time

import pytest

from services.cli.commands import confirmation
from services.store import QueueSpec, Store
from services.store.model.delivery import Delivery
from services.store.pipeline.async_client import AsyncClient
from tests.cli.commands.sending import GOAL, REMOTE, Sending, confirmed, declare, tracking_keys
from tests.cli.shell import Shell
from tests.live import until
from tests.servers import Server, eventually


def test_message_taken_by_another_session(quiet: Shell, server: Server) -> None:
    """Check that a message that another session has acknowledged is not confirmed, as only an edge can do that."""
    sending = Sending(quiet)
    sending.work(lambda _, client, got: client.settle(got))
    reported, given = sending.end(1)
    assert reported == {"queue": GOAL, "state": "taken", "reason": "taken"}
    assert "another session took it out of away: test-" in given
    assert tracking_keys(server) == []


def test_queue_is_purged(quiet: Shell) -> None:
    sending = Sending(quiet)
    quiet.run("queue", "purge", GOAL, "--yes")
    reported, given = sending.end(1)
    assert reported == {"queue": GOAL, "state": "emptied", "reason": "emptied"}
    assert f"{GOAL} was purged, and the message with it" in given


def test_returned_message_dies(quiet: Shell) -> None:
    sending = Sending(quiet)

    async def fails(_: Store, client: AsyncClient, got: list[Delivery]) -> None:
        await client.release(got, to_end=True)
        got = await client.take(got[0].queue, 10)
        await client.reject(got, "no_receiver", "no machine has it")

    sending.work(fails)
    reported, given = sending.end(1)
    assert reported == {"queue": GOAL, "state": "dead", "reason": "no_receiver"}
    complaint = json.loads(given)
    assert complaint["error"] == "no_receiver"
    assert complaint["message"].endswith(": no machine has it")
    letter = quiet.run("dead", "list", GOAL, "--json").object["id"]
    assert f"it became dead letter {letter} of {GOAL}" in complaint["message"]


def test_message_expires(quiet: Shell) -> None:
    declare(quiet, messageTTL="1s")
    sending = Sending(quiet)
    eventually(lambda: _look(quiet) or quiet.stats(GOAL)["dead"])
    assert sending.end(1)[0]["reason"] == "expired"


def _look(shell: Shell) -> None:
    async def tidy(store: Store) -> None:
        await store.get_domain("main").tidy(await store.catalogue.find(GOAL))

    shell.with_store(tidy)


def test_queue_is_deleted(quiet: Shell, server: Server) -> None:
    sending = Sending(quiet)
    quiet.run("queue", "delete", GOAL, "--yes")
    reported, given = sending.end(4)
    assert reported == {"queue": GOAL, "state": "deleted", "reason": "queue_unknown"}
    assert "queue 'away' was deleted, and the message with it" in given
    assert tracking_keys(server) == []


def test_reasons_for_waiting(quiet: Shell, server: Server) -> None:
    """Check the reasons for waiting: no edge, then a paused queue; the timeout reports the last one."""
    sending = Sending(quiet, "--timeout", "5", as_json=False)
    assert sending.process.stderr is not None
    first = sending.process.stderr.readline().decode()
    assert first == "waiting: not_carried: no edge sends its messages: start `penstock serve rqp`\n"
    declare(quiet, paused=True)
    second = sending.process.stderr.readline().decode()
    assert second == "waiting: queue_paused: queue 'away' is paused\n"
    _, given = sending.end(5)
    assert given == (
        "penstock: queue_paused: queue 'away' is paused; not confirmed within 5 s: the message is still in away"
    )
    assert quiet.stats(GOAL)["ready"] == 1
    assert tracking_keys(server) == []


@pytest.mark.parametrize("condition", ["", "no_receiver: no peer has queue 7"])
def test_missing_edge_ends_the_wait(quiet: Shell, monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    """Check that a missing edge ends the wait in any condition of the previous edge; a new edge gets its time."""
    monkeypatch.setattr(confirmation, "DIAGNOSIS_S", 0.05)
    monkeypatch.setattr(confirmation, "UNCARRIED_S", 1.0)

    async def work(store: Store) -> None:
        queue, domain = await store.catalogue.find(GOAL), store.open_domain()
        fence = await domain.claims.own(queue, "rqp-test", 2_500)
        assert fence is not None
        assert await domain.claims.set_condition(queue, condition, fence, 0)
        began = time.monotonic()
        assert await confirmed(store, None) == "5 not_carried"
        assert time.monotonic() - began > 3.4

    quiet.with_store(work)
    assert quiet.stats(GOAL)["ready"] == 1


def test_paused_queue_is_waited_for(quiet: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a paused queue is waited for, as it will be resumed."""
    monkeypatch.setattr(confirmation, "DIAGNOSIS_S", 0.05)
    monkeypatch.setattr(confirmation, "UNCARRIED_S", 0.1)

    async def work(store: Store) -> None:
        waiting = asyncio.create_task(confirmed(store, None))
        queue = await store.catalogue.find(GOAL)

        async def is_in() -> bool:
            return bool((await store.listing.stats(queue))["added"])

        await until(is_in)
        await store.catalogue.declare(
            GOAL, QueueSpec.model_validate({"remote": REMOTE, "paused": True}), "test", replace=True
        )
        await asyncio.wait({waiting}, timeout=2)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    quiet.with_store(work)


def test_last_poll_finds_a_late_confirmation(
    quiet: Shell, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a confirmation since the last poll is not reported as a timeout."""
    monkeypatch.setattr(confirmation, "SHORTEST_S", 3600.0)

    async def work(store: Store) -> None:
        edge = Store(server.url, "rqp-test")
        queue = await edge.catalogue.find(GOAL)
        client = AsyncClient(edge.open_domain(queue.domain).pipe)
        await edge.open_domain(queue.domain).pipe.ready()
        waiting = asyncio.create_task(confirmed(store, 2.0))
        await client.settle(await until(lambda: client.take(queue, 1)))
        assert not waiting.done()
        assert await waiting == ""
        await edge.close()

    quiet.with_store(work)


def test_last_poll_reports_why_it_waits(quiet: Shell) -> None:
    """Check that the last poll reports why the message waits, also before the first check of the reason."""
    reported, _ = Sending(quiet, "--timeout", "0.3").end(5)
    assert reported == {"queue": GOAL, "state": "waits", "reason": "not_carried"}


def test_earlier_errors_do_not_end_the_wait(quiet: Shell, server: Server) -> None:
    """Check that only a new error ends the wait, in the same words or others."""

    def report(text: str, errors: int) -> None:
        async def write(store: Store) -> None:
            queue, domain = await store.catalogue.find(GOAL), store.open_domain()
            fence = await domain.claims.own(queue, "rqp-test", 60_000)
            assert fence is not None
            assert await domain.claims.set_condition(queue, text, fence, errors)

        quiet.with_store(write)

    report("no_receiver: no peer has queue 7", 3)
    sending = Sending(quiet, as_json=False)
    assert sending.process.stderr is not None
    assert sending.process.stderr.readline() == b"waiting: no_receiver: no peer has queue 7\n"
    report("data_timeout: the peer does not confirm", 0)
    assert sending.process.stderr.readline() == b"waiting: data_timeout: the peer does not confirm\n"
    report("data_timeout: the peer does not confirm", 1)
    _, given = sending.end(5)
    assert given == (
        "penstock: data_timeout: the peer does not confirm: the message stays in away and will be sent later"
    )
    assert quiet.stats(GOAL)["send_errors"] == 4
    assert tracking_keys(server) == []


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_the_wait(quiet: Shell, server: Server, signum: signal.Signals, code: int) -> None:
    sending = Sending(quiet, as_json=False)
    assert sending.process.stderr is not None
    assert sending.process.stderr.readline().startswith(b"waiting: not_carried")
    sending.process.send_signal(signum)
    _, given = sending.end(code)
    assert given == "stopped waiting: it is not confirmed yet and stays in away"
    assert quiet.stats(GOAL)["ready"] == 1
    assert tracking_keys(server) == []
