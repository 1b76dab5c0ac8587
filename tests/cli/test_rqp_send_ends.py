"""penstock rqp send --wait: every end that is not the good one, on a store without edges (docs/cli.md, rqp send)."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.cli import confirmation
from services.cli.confirmation import LAST_S, Confirmation
from services.cli.exits import Failure
from services.cli.output import Output
from services.store import QueueSpec, Store, StoreUnavailable, records
from services.store.asking import Asker
from services.store.connect import REPLY_TIMEOUT_S
from services.store.delivery import Delivery
from services.store.fates import Watch
from tests.cli.shell import Shell
from tests.live import until
from tests.servers import Server, eventually

GOAL = "away"
REMOTE = {"protocol": "rqp-mca", "queueId": 7}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server("valkey", tmp_path / "store").start()
    yield server
    server.end()


@pytest.fixture
def quiet(alone: Shell, server: Server) -> Shell:
    """Nobody carries anything away here."""
    alone.environment["REDIS_URL"] = server.url
    alone.run("store", "init")
    declare(alone)
    return alone


def declare(shell: Shell, **spec: Any) -> None:
    document = QueueSpec.model_validate({"remote": REMOTE, **spec})
    shell.with_store(lambda store: store.declare(GOAL, document, "test", replace=True))


class Sending:
    """A command that waits."""

    def __init__(self, shell: Shell, *options: str, as_json: bool = True) -> None:
        self.shell = shell
        told = ("--json",) if as_json else ()
        command = ("rqp", "send", "--queue-id", "7", "--wait", *told, *options, "a message")
        self.process = shell.spawn(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        eventually(lambda: shell.stats(GOAL)["added"] or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()

    def end(self, code: int) -> tuple[dict[str, Any], str]:
        """What it told programs, and its last line."""
        out, err = self.process.communicate(timeout=30)
        assert self.process.returncode == code, (out, err)
        lines = [
            line for line in err.decode().splitlines() if line
        ]  # after Ctrl-C the terminal gets an empty one
        assert "Traceback" not in err.decode()
        return json.loads(out) if out else {}, lines[-1] if lines else ""

    def work(self, what: Callable[[Store, Asker, list[Delivery]], Awaitable[Any]]) -> None:
        """Somebody else takes the message, and does something with it."""

        async def session(store: Store) -> None:
            queue = await store.find(GOAL)
            pipe = store.domain(queue.domain).pipe
            await pipe.ready()
            asker = Asker(pipe)
            await what(store, asker, await asker.take(queue, 10))

        self.shell.with_store(session)


def fates(server: Server) -> list[bytes]:
    return [key for key in server.call("KEYS", "ps:*") if b":fate:" in key]


def test_somebody_else_takes_it(quiet: Shell, server: Server) -> None:
    """Settled is not sent: only an edge that carries messages away can say so."""
    sending = Sending(quiet)
    sending.work(lambda _, asker, got: asker.settle(got))
    told, said = sending.end(1)
    assert told == {"queue": GOAL, "state": "taken", "reason": "taken"}
    assert "somebody else took it out of away: test-" in said
    assert fates(server) == []


def test_its_queue_is_emptied(quiet: Shell) -> None:
    sending = Sending(quiet)
    quiet.run("queue", "purge", GOAL, "--yes")
    told, said = sending.end(1)
    assert told == {"queue": GOAL, "state": "emptied", "reason": "emptied"}
    assert f"{GOAL} was emptied, and the message is gone for good" in said


def test_it_is_given_back_and_dies(quiet: Shell) -> None:
    sending = Sending(quiet)

    async def fails(_: Store, asker: Asker, got: list[Delivery]) -> None:
        await asker.release(got, to_end=True)
        got = await asker.take(got[0].queue, 10)
        await asker.reject(got, "no_receiver", "nobody has it")

    sending.work(fails)
    told, said = sending.end(1)
    assert told == {"queue": GOAL, "state": "dead", "reason": "no_receiver"}
    complaint = json.loads(said)
    assert complaint["error"] == "no_receiver"
    assert complaint["message"].endswith("): nobody has it")
    letter = quiet.run("dead", "list", GOAL, "--json").object["id"]
    assert f"dead letters of {GOAL}, not in it any more ({letter})" in complaint["message"]


def test_it_expires(quiet: Shell) -> None:
    declare(quiet, messageTTL="1s")
    sending = Sending(quiet)
    eventually(lambda: _look(quiet) or quiet.stats(GOAL)["dead"])
    assert sending.end(1)[0]["reason"] == "expired"


def _look(shell: Shell) -> None:
    async def tidy(store: Store) -> None:
        await store.look_at("main").tidy(await store.find(GOAL))

    shell.with_store(tidy)


def test_the_queue_is_deleted_with_it(quiet: Shell, server: Server) -> None:
    sending = Sending(quiet)
    quiet.run("queue", "delete", GOAL, "--yes")
    told, said = sending.end(4)
    assert told == {"queue": GOAL, "state": "deleted", "reason": "queue_unknown"}
    assert "queue 'away' was deleted, and the message with it" in said
    assert fates(server) == []


def test_why_it_waits(quiet: Shell, server: Server) -> None:
    """Nobody carries it; then the queue is paused; the time-out says the last of it."""
    sending = Sending(quiet, "--timeout", "5", as_json=False)
    assert sending.process.stderr is not None
    first = sending.process.stderr.readline().decode()
    assert first == "waiting: not_carried: no edge carries its messages away: start `penstock serve rqp`\n"
    declare(quiet, paused=True)
    second = sending.process.stderr.readline().decode()
    assert second == "waiting: queue_paused: queue 'away' is paused\n"
    _, said = sending.end(5)
    assert said == (
        "penstock: queue_paused: queue 'away' is paused; not confirmed within 5 s: the message is still in away"
    )
    assert quiet.stats(GOAL)["ready"] == 1
    assert fates(server) == []


async def _confirmed(store: Store, timeout_s: float | None, *, as_json: bool = True) -> str:
    """'' if it was; else the label that the command ends with."""
    waiting = Confirmation(store, Output(as_json=as_json), await store.find(GOAL), is_certain=True)
    try:
        await waiting.of(records.encode(b"a message"), timeout_s)
    except Failure as failure:
        return f"{int(failure.exit)} {failure.label}"
    return ""


@pytest.mark.parametrize("condition", ["", "no_receiver: no peer has queue 7"])
def test_an_edge_is_not_waited_for_for_ever(
    quiet: Shell, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    """Whatever the last one said, which has gone; one that comes meanwhile is given its time."""
    monkeypatch.setattr(confirmation, "NEWS_S", 0.05)
    monkeypatch.setattr(confirmation, "UNCARRIED_S", 1.0)

    async def work(store: Store) -> None:
        queue, domain = await store.find(GOAL), store.domain()
        fence = await domain.own(queue, "rqp-test", 2_500)
        assert fence is not None
        assert await domain.set_condition(queue, condition, fence, 0)
        began = time.monotonic()
        assert await _confirmed(store, None) == "5 not_carried"
        assert time.monotonic() - began > 3.4

    quiet.with_store(work)
    assert quiet.stats(GOAL)["ready"] == 1


def test_an_edge_has_its_time_again_after_the_store_was_away(
    quiet: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hears of the store's return no sooner than the command does."""
    monkeypatch.setattr(confirmation, "NEWS_S", 0.05)
    monkeypatch.setattr(confirmation, "UNCARRIED_S", 2.0)
    look, goes_at = Watch.look, time.monotonic() + 3600
    away_at: list[float] = []

    async def lost_once(watch: Watch) -> Any:
        if not away_at and time.monotonic() >= goes_at:
            away_at.append(time.monotonic())
            raise StoreUnavailable("not there")
        return await look(watch)

    monkeypatch.setattr(Watch, "look", lost_once)

    async def work(store: Store) -> None:
        nonlocal goes_at
        goes_at = time.monotonic() + 1.0
        assert await _confirmed(store, None) == "5 not_carried"

    quiet.with_store(work)
    assert time.monotonic() - away_at[0] >= 2.0


def test_a_paused_queue_is_waited_for(quiet: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has paused it goes on with it; and who gives a time-out waits for that."""
    monkeypatch.setattr(confirmation, "NEWS_S", 0.05)
    monkeypatch.setattr(confirmation, "UNCARRIED_S", 0.1)

    async def work(store: Store) -> None:
        waiting = asyncio.create_task(_confirmed(store, None))
        queue = await store.find(GOAL)

        async def is_in() -> bool:
            return bool((await store.stats(queue))["added"])

        await until(is_in)
        await store.declare(
            GOAL, QueueSpec.model_validate({"remote": REMOTE, "paused": True}), "test", replace=True
        )
        await asyncio.wait({waiting}, timeout=2)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    quiet.with_store(work)


def test_the_last_look_finds_what_came_in_the_last_moment(
    quiet: Shell, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edge has sent it since it was last asked for: that is no time-out."""
    monkeypatch.setattr(confirmation, "SHORTEST_S", 3600.0)

    async def work(store: Store) -> None:
        edge = Store(server.url, "rqp-test")
        queue = await edge.find(GOAL)
        asker = Asker(edge.domain(queue.domain).pipe)
        await edge.domain(queue.domain).pipe.ready()
        waiting = asyncio.create_task(_confirmed(store, 2.0))
        await asker.settle(await until(lambda: asker.take(queue, 1)))
        assert not waiting.done()
        assert await waiting == ""
        await edge.close()

    quiet.with_store(work)


def test_the_last_look_says_why_nothing_came(quiet: Shell) -> None:
    """Before it was looked for the first time."""
    told, _ = Sending(quiet, "--timeout", "0.3").end(5)
    assert told == {"queue": GOAL, "state": "waits", "reason": "not_carried"}


def test_an_error_that_was_reported_before_ends_nothing(quiet: Shell, server: Server) -> None:
    """The next one does, in the same words or others."""

    def report(text: str, errors: int) -> None:
        async def tell(store: Store) -> None:
            queue, domain = await store.find(GOAL), store.domain()
            fence = await domain.own(queue, "rqp-test", 60_000)
            assert fence is not None
            assert await domain.set_condition(queue, text, fence, errors)

        quiet.with_store(tell)

    report("no_receiver: no peer has queue 7", 3)
    sending = Sending(quiet, as_json=False)
    assert sending.process.stderr is not None
    assert sending.process.stderr.readline() == b"waiting: no_receiver: no peer has queue 7\n"
    report("data_timeout: the peer does not confirm", 0)
    assert sending.process.stderr.readline() == b"waiting: data_timeout: the peer does not confirm\n"
    report("data_timeout: the peer does not confirm", 1)
    _, said = sending.end(5)
    assert said == (
        "penstock: data_timeout: the peer does not confirm: the message waits in away and will still be sent"
    )
    assert quiet.stats(GOAL)["send_errors"] == 4
    assert fates(server) == []


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_whoever_does_not_wait_any_longer(
    quiet: Shell, server: Server, signum: signal.Signals, code: int
) -> None:
    sending = Sending(quiet, as_json=False)
    assert sending.process.stderr is not None
    assert sending.process.stderr.readline().startswith(b"waiting: not_carried")
    sending.process.send_signal(signum)
    _, said = sending.end(code)
    assert said == "not waited for: it was not confirmed yet, and stays in away"
    assert quiet.stats(GOAL)["ready"] == 1
    assert fates(server) == []


def test_the_store_is_away_and_comes_back(quiet: Shell, server: Server) -> None:
    """The message is in it: the waiting goes on."""
    sending = Sending(quiet, as_json=False)
    server.kill9()
    assert sending.process.stderr is not None
    lines = iter(sending.process.stderr.readline, b"")
    assert any(line.startswith(b"waiting: store_unavailable: ") for line in lines)
    server.start()
    sending.work(lambda _, asker, got: asker.reject(got, "unconfirmed"))
    assert "unconfirmed" in sending.end(1)[1]


def test_the_store_stays_away(quiet: Shell, server: Server) -> None:
    """It is stored, and nobody can say more."""
    sending = Sending(quiet, "--timeout", "3")
    server.kill9()
    told, said = sending.end(5)
    assert told == {"queue": GOAL, "state": "unknown", "reason": "store_unavailable"}
    assert "stored in away, but " in said


def test_the_store_falls_silent(quiet: Shell, server: Server) -> None:
    """Once the time is over it is not waited for: neither for a last answer, nor to tell it that nobody waits."""
    sending = Sending(quiet, "--timeout", "3")
    server.stop()
    try:
        began = time.monotonic()
        told, said = sending.end(5)
        took_s = time.monotonic() - began
    finally:
        server.cont()
    assert told == {"queue": GOAL, "state": "unknown", "reason": "store_unavailable"}
    assert json.loads(said)["message"] == "stored in away, but the store does not answer"
    assert took_s < 3 + LAST_S + REPLY_TIMEOUT_S / 2


def test_one_trouble_in_two_texts_is_told_once(
    quiet: Shell, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A store that is silent says so in turns: to whoever asks it, and to those who wait for that one."""
    look, texts = Watch.look, iter(("it does not answer", "others wait for it already") * 2)

    async def fail(watch: Watch) -> Any:
        if (text := next(texts, None)) is not None:
            raise StoreUnavailable(text)
        return await look(watch)

    monkeypatch.setattr(Watch, "look", fail)
    quiet.with_store(lambda store: _confirmed(store, 1.0, as_json=False))
    said = capfd.readouterr().err
    assert said.count("waiting: store_unavailable: ") == 1
    assert "it does not answer" in said


def test_the_store_loses_everything(quiet: Shell, server: Server) -> None:
    sending = Sending(quiet)
    server.call("FLUSHALL")
    quiet.run("store", "init")
    assert "outcome_unknown" in sending.end(5)[1]
