"""Test `penstock rqp send`: the queue, the message, and how waiting ends without a confirmation."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from services.store import QueueSpec, Store
from tests.cli.shell import Shell
from tests.servers import eventually

_numbers = itertools.count(1_000)


@pytest.fixture
def number() -> int:
    """Return a number of a remote queue that no other test uses."""
    return next(_numbers)


@pytest.fixture
def stays(shell: Shell, number: int) -> str:
    """Return a transmission queue whose messages no edge sends."""
    return declare(shell, f"to{number}", "rqp-cast", key=number)


def declare(shell: Shell, name: str, protocol: str, **remote: Any) -> str:
    paused = remote.pop("paused", False)
    fields = {"protocol": protocol, "peers": ["missing"], **remote}
    spec = QueueSpec.model_validate({"remote": fields, "paused": paused})
    shell.with_store(lambda store: store.catalogue.declare(name, spec, "test"))
    return name


def waiting(shell: Shell, queue: str) -> list[tuple[str, Any]]:
    """Return body and reliability of a queue's messages, after all other leases have ended."""
    shell.with_store(lambda store: _paused(store, queue))
    eventually(lambda: shell.stats(queue)["in_flight"] == 0)
    return [(m["body"], m["attributes"].get("certain")) for m in shell.run("peek", queue, "--json").objects]


async def _paused(store: Store, name: str) -> None:
    """Pause the queue, so that all leased messages return to it."""
    found = await store.catalogue.find(name)
    spec = found.spec.model_copy(update={"paused": True})
    await store.catalogue.declare(name, spec, "test", replace=True)


def test_attribute_certain_must_be_true_or_false(shell: Shell, stays: str) -> None:
    shell.run("put", stays, "--attr", "certain=false", "not kept")
    output = shell.fails("put", stays, "--attr", "certain=no", "refused", code=2)
    assert "the attribute certain must be true or false in a transmission queue, not 'no'" in output
    queue = shell.with_store(lambda store: store.catalogue.find(stays))
    remote = queue.spec.remote
    assert [remote.is_certain({"certain": value}) for value in ("false", "False", "true", False, "no")] == [
        *(False, False, True, False, True)
    ]


def test_message_is_stored_with_its_reliability(shell: Shell, stays: str, number: int) -> None:
    assert shell.run("rqp", "send", "--key", str(number), "as the queue says").text == f"stored in {stays}\n"
    shell.run("rqp", "send", "--key", str(number), "--reliable", "certain")
    document = shell.run("rqp", "send", "--queue", stays, "--unreliable", "--json", "uncertain").object
    assert document == {"queue": stays, "state": "stored"}
    assert sorted(waiting(shell, stays), key=str) == [
        ("as the queue says", None),
        ("certain", True),
        ("uncertain", False),
    ]


def test_the_body_may_come_from_a_file_or_standard_input(shell: Shell, stays: str, number: int) -> None:
    path = shell.write("body", "of a file\n")
    shell.run("rqp", "send", "--key", str(number), "--file", str(path))
    shell.run("rqp", "send", "--key", str(number), stdin=b"of stdin\n")
    assert sorted(body for body, _ in waiting(shell, stays)) == ["of a file\n", "of stdin\n"]


def test_best_transmission_queue_is_chosen(shell: Shell, number: int) -> None:
    """Check the choice of the queue: same reliability first (default: reliable), then not paused."""
    kept = declare(shell, f"kept{number}", "rqp-mca", queueId=number, peers=["a"])
    once = declare(shell, f"once{number}", "rqp-mca", queueId=number, peers=["b"], reliable=False)
    declare(shell, f"paused{number}", "rqp-mca", queueId=number, peers=["c"], paused=True)
    declare(shell, f"cast{number}", "rqp-cast", key=number, reliable=False)

    def sent(*options: str) -> str:
        document = shell.run("rqp", "send", "--queue-id", str(number), "--json", *options, "x").object
        return str(document["queue"])

    assert (sent(), sent("--reliable"), sent("--unreliable")) == (kept, kept, once)
    shell.run("queue", "delete", kept, "--yes")
    shell.run("queue", "delete", f"paused{number}", "--yes")
    assert sent("--reliable") == once, "the message itself is marked as reliable"
    assert shell.run("rqp", "send", "--key", str(number), "x").text == f"stored in cast{number}\n"


def test_ambiguous_transmission_queue_is_refused(shell: Shell, number: int) -> None:
    for letter in "ab":
        declare(shell, f"{letter}{number}", "rqp-cast", key=number, peers=[letter])
    output = shell.fails("rqp", "send", "--key", str(number), "x", code=2)
    assert output == f"several_queues: a{number}, b{number} lead there: choose one with --queue"
    assert shell.run("rqp", "send", "--queue", f"b{number}", "x").text == f"stored in b{number}\n"


def test_messages_that_cannot_be_sent(shell: Shell, queue: str, stays: str, number: int) -> None:
    elsewhere = next(_numbers)
    output = shell.fails("rqp", "send", "--key", str(elsewhere), "x", code=4)
    options = f"--remote-protocol rqp-cast --remote-key {elsewhere}`"
    assert output.startswith(f"not_found: no transmission queue leads to key {elsewhere} of rqp-cast")
    assert output.endswith(options)
    shell.run("queue", "create", f"made{elsewhere}", *options.removesuffix("`").split())
    shell.run("rqp", "send", "--key", str(elsewhere), "x")
    assert shell.fails("rqp", "send", "--queue-id", str(number), "x", code=4).startswith("not_found")
    assert shell.fails("rqp", "send", "--queue", "missing", "x", code=4).startswith("queue_unknown")
    assert "is no transmission queue" in shell.fails("rqp", "send", "--queue", queue, "x", code=2)
    for options_ in ((), ("--key", "1", "--queue-id", "1"), ("--key", "1", "--queue", "a")):
        assert "name the target" in shell.fails("rqp", "send", *options_, "x", code=2)
    assert "usage" in shell.fails("rqp", "send", "--key", str(1 << 32), "x", code=2)
    large = b"x" * ((1 << 20) + 1)
    for wait in ((), ("--wait",)):
        output = shell.fails("rqp", "send", "--key", str(number), *wait, stdin=large, code=1)
        assert output.startswith("too_large_for_peers")
    shell.with_store(lambda store: _paused(store, stays))
    for wait in ((), ("--wait",)):
        assert shell.fails("rqp", "send", "--key", str(number), *wait, "x", code=1).startswith("queue_paused")
