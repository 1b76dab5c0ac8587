"""Test `penstock rqp send --wait` with a store that stops, hangs or loses its data (docs/cli.md, rqp send)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from services.cli.commands import confirmation
from services.cli.commands.confirmation import LAST_S
from services.store import Store, StoreUnavailable
from services.store.deadletters.delivery_tracking import DeliveryTracker
from services.store.redis.connect import REPLY_TIMEOUT_S
from tests.cli.commands.sending import GOAL, Sending, confirmed
from tests.cli.shell import Shell
from tests.servers import Server


def test_edge_gets_its_time_again_after_a_store_outage(quiet: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that an edge gets its time again after an outage, whose end it notices no earlier than the command."""
    monkeypatch.setattr(confirmation, "DIAGNOSIS_S", 0.05)
    monkeypatch.setattr(confirmation, "UNCARRIED_S", 2.0)
    poll, goes_at = DeliveryTracker.poll, time.monotonic() + 3600
    away_at: list[float] = []

    async def lost_once(watch: DeliveryTracker) -> Any:
        if not away_at and time.monotonic() >= goes_at:
            away_at.append(time.monotonic())
            raise StoreUnavailable("not there")
        return await poll(watch)

    monkeypatch.setattr(DeliveryTracker, "poll", lost_once)

    async def work(store: Store) -> None:
        nonlocal goes_at
        goes_at = time.monotonic() + 1.0
        assert await confirmed(store, None) == "5 not_carried"

    quiet.with_store(work)
    assert time.monotonic() - away_at[0] >= 2.0


def test_wait_continues_after_a_store_outage(quiet: Shell, server: Server) -> None:
    """Check that the wait continues after an outage, as the message is in the store."""
    sending = Sending(quiet, as_json=False)
    server.kill9()
    assert sending.process.stderr is not None
    lines = iter(sending.process.stderr.readline, b"")
    assert any(line.startswith(b"waiting: store_unavailable: ") for line in lines)
    server.start()
    sending.work(lambda _, asker, got: asker.reject(got, "unconfirmed"))
    assert "unconfirmed" in sending.end(1)[1]


def test_store_stays_unavailable(quiet: Shell, server: Server) -> None:
    """Check that the outcome of a stored message is unknown if the store stays unavailable."""
    sending = Sending(quiet, "--timeout", "3")
    server.kill9()
    reported, given = sending.end(5)
    assert reported == {"queue": GOAL, "state": "unknown", "reason": "store_unavailable"}
    assert "stored in away, but " in given


def test_store_becomes_silent(quiet: Shell, server: Server) -> None:
    """Check that the timeout ends the wait for a silent store's last reply and for the end of the watch."""
    sending = Sending(quiet, "--timeout", "3")
    server.stop()
    try:
        began = time.monotonic()
        reported, given = sending.end(5)
        took_s = time.monotonic() - began
    finally:
        server.cont()
    assert reported == {"queue": GOAL, "state": "unknown", "reason": "store_unavailable"}
    assert json.loads(given)["message"] == "stored in away, but the store is not responding"
    assert took_s < 3 + LAST_S + REPLY_TIMEOUT_S / 2


def test_store_outage_is_reported_once(
    quiet: Shell, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Check that an outage is reported once, although a silent store gives different errors to waiting requests."""
    poll, texts = DeliveryTracker.poll, iter(("it does not answer", "others wait for it already") * 2)

    async def fail(watch: DeliveryTracker) -> Any:
        if (text := next(texts, None)) is not None:
            raise StoreUnavailable(text)
        return await poll(watch)

    monkeypatch.setattr(DeliveryTracker, "poll", fail)
    quiet.with_store(lambda store: confirmed(store, 1.0, as_json=False))
    output = capfd.readouterr().err
    assert output.count("waiting: store_unavailable: ") == 1
    assert "it does not answer" in output


def test_store_loses_its_data(quiet: Shell, server: Server) -> None:
    sending = Sending(quiet)
    server.call("FLUSHALL")
    quiet.run("store", "init")
    assert "outcome_unknown" in sending.end(5)[1]
