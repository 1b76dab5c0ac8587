"""Test Redrive resources: dead letters of a real store become messages again (docs/kubernetes.md, "Redrive")."""

from __future__ import annotations

import re
import time

import pytest

from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, peer, queue, redrive
from tests.servers import eventually
from tests.store.desk import numbered


@pytest.fixture
def orders(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> str:
    """Return a queue with eight dead letters: five refused, three expired."""
    return prepared(seen, keeper)


def prepared(seen: Seen, keeper: Keeper, number: int = 5) -> str:
    seen.declared(queue("orders"))
    keeper.kill("orders", number, "refused")
    return "orders"


def progress_of(seen: Seen, name: str) -> tuple[int, int, int]:
    status = seen.get("redrive", name)["status"]
    return status["matched"], status["moved"], status["remaining"]


def test_redrive_keeps_order(orders: str, seen: Seen, keeper: Keeper) -> None:
    seen.apply(redrive("again", orders))
    found = seen.becomes("redrive", "again", "True", "Complete")
    assert found["message"] == "moved 5 dead letters to orders"
    assert progress_of(seen, "again") == (5, 5, 0)
    assert keeper.take("orders") == numbered(5)
    eventually(lambda: seen.events("again") == ["Running", "Complete"])
    assert re.search(
        r"again +True +Complete +5 +5 +0 ", seen.cluster.kubectl("get", "redrives", "-n", seen.namespace)
    )


def test_dry_run_moves_nothing(orders: str, seen: Seen, keeper: Keeper) -> None:
    seen.apply(redrive("preview", orders, dryRun=True))
    seen.becomes("redrive", "preview", "True", "Complete")
    assert progress_of(seen, "preview") == (5, 0, 5)
    assert "none are moved" in seen.event("preview", "Running")
    assert len(keeper.dead("orders")) == 5


def test_filter_selects_letters(orders: str, seen: Seen, keeper: Keeper) -> None:
    keeper.kill("orders", 3, "expired", first=5)
    seen.declared(queue("other"))
    seen.apply(redrive("expired", orders, filter={"reasons": ["expired"], "origin": "test"}, target="other"))
    seen.becomes("redrive", "expired", "True", "Complete")
    assert keeper.take("other") == numbered(3, 5)
    assert keeper.dead("orders") == numbered(5)
    seen.apply(redrive("old", orders, filter={"olderThan": "1h"}))
    seen.becomes("redrive", "old", "True", "Complete")
    assert progress_of(seen, "old") == (0, 0, 0)


def test_rate_limit_is_kept(orders: str, seen: Seen, keeper: Keeper) -> None:
    keeper.kill("orders", 35, "refused", first=5)
    began = time.monotonic()
    seen.apply(redrive("slow", orders, rate=10))
    seen.becomes("redrive", "slow", "False", "Running")
    seen.becomes("redrive", "slow", "True", "Complete", 30)
    assert time.monotonic() - began >= 3.5  # 40 at 10/s, the first of them at once
    assert keeper.take("orders") == numbered(40)


def test_killed_operator_continues_with_an_exact_count(
    new_operator: NewOperator, seen: Seen, keeper: Keeper
) -> None:
    first = new_operator().ready()
    prepared(seen, keeper, 60)
    seen.apply(redrive("again", "orders", rate=20))
    eventually(lambda: keeper.stats("orders")["redriven"] >= 20)
    first.kill()
    keeper.kill("orders", 7, "expired", first=60)  # died later, and are not included
    new_operator().ready()
    seen.becomes("redrive", "again", "True", "Complete", 60)
    assert progress_of(seen, "again") == (60, 60, 0)
    assert len(keeper.dead("orders")) >= 7
    assert keeper.stats("orders")["redriven"] == 60


def test_full_or_paused_target_is_waited_for(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    prepared(seen, keeper)
    seen.declared(queue("orders", maxLength=2))
    seen.apply(redrive("again", "orders"))
    found = seen.becomes("redrive", "again", "False", "Pending")
    assert found["message"].startswith("target 'orders': the queue is full: take messages out of it, ")
    first = keeper.take("orders")
    seen.apply(queue("orders", paused=True))
    seen.becomes("queue", "orders", "True", "Paused")
    eventually(
        lambda: seen.condition("redrive", "again")["message"] == "target 'orders': the queue is paused"
    )
    seen.apply(queue("orders"))
    seen.becomes("redrive", "again", "True", "Complete")
    assert first + keeper.take("orders") == numbered(5)


def test_letters_removed_by_others(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    prepared(seen, keeper, 20)
    seen.apply(redrive("again", "orders", rate=2))
    eventually(lambda: keeper.stats("orders")["redriven"] >= 1)
    keeper.purge("orders")
    found = seen.becomes("redrive", "again", "True", "Complete")
    matched, moved, remaining = progress_of(seen, "again")
    assert (matched, remaining) == (20, 0)
    assert 1 <= moved < 20
    assert f"{20 - moved} were gone before they could be moved" in found["message"]
    assert keeper.stats("orders")["redriven"] == moved


def test_recreated_source(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check a Redrive whose source is deleted and created again, which loses the count."""
    keeper.declare("orders")
    keeper.kill("orders", 400)
    seen.apply(queue("fixed"), redrive("again", "orders", target="fixed", rate=20))
    eventually(lambda: seen.get("redrive", "again").get("status", {}).get("moved", 0) >= 20)
    keeper.remove("orders")
    keeper.declare("orders")
    keeper.kill("orders", 3, first=1000)
    found = seen.becomes("redrive", "again", "False", "Failed", 30)
    assert "source 'orders' was deleted with its dead letters" in found["message"]
    matched, moved, remaining = progress_of(seen, "again")
    assert (matched, moved + remaining) == (400, 400)
    assert moved >= 20
    assert len(keeper.take("fixed")) - moved in range(11)  # of two steps that were not counted
    assert len(keeper.dead("orders")) == 3


def test_missing_queues_are_waited_for(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check that missing queues are waited for, up to a minute, as when they are applied together."""
    prepared(seen, keeper)
    seen.apply(redrive("again", "orders", target="fresh"), redrive("lost", "missing"))
    for name, message in (
        ("again", "target: there is no queue 'fresh'"),
        ("lost", "source: there is no queue 'missing'"),
    ):
        assert seen.becomes("redrive", name, "False", "Pending")["message"] == message
    seen.apply(queue("fresh"))
    seen.becomes("redrive", "again", "True", "Complete")
    assert keeper.take("fresh") == numbered(5)


def test_queues_of_another_namespace(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check that a Redrive may use only the queues that its namespace may declare with a Queue."""
    keeper.declare("theirs", owner="kubernetes elsewhere/theirs")
    keeper.kill("theirs", 3)
    seen.apply(queue("ours"), redrive("steal", "theirs", target="ours"))
    found = seen.becomes("redrive", "steal", "False", "Failed")
    assert found["message"] == (
        "queue 'theirs' belongs to a Queue in namespace 'elsewhere': create the Redrive there"
    )
    assert len(keeper.dead("theirs")) == 3


def test_message_too_large_for_the_target(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check that a message too large for the target fails the Redrive, which reports the letters moved before."""
    small = {"protocol": "rqp-mca", "queueId": 9, "maxMessageBytes": 6}
    seen.declared(peer("shop"), queue("orders"), queue("small", remote=small))
    keeper.kill("orders", 3)  # six bytes each
    keeper.kill("orders", 1, first=1_000_000)  # eight bytes
    seen.apply(redrive("again", "orders", target="small"))
    found = seen.becomes("redrive", "again", "False", "Failed")
    assert found["message"] == "target 'small': the message is larger than the queue's peers accept"
    assert progress_of(seen, "again") == (4, 3, 1)
    assert len(keeper.dead("orders")) == 1


def test_deleted_redrive_stops(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    prepared(seen, keeper, 50)
    seen.apply(redrive("slow", "orders", rate=5))
    eventually(lambda: keeper.stats("orders")["redriven"] >= 5)
    assert keeper.runs("orders") == 1
    seen.delete("redrive", "slow", 10)
    eventually(lambda: keeper.runs("orders") == 0)  # the count has stopped, because no message moves
    moved = keeper.stats("orders")["redriven"]
    seen.apply(redrive("rest", "orders", rate=1000))
    seen.becomes("redrive", "rest", "True", "Complete")
    assert progress_of(seen, "rest") == (50 - moved, 50 - moved, 0)
    eventually(lambda: keeper.runs("orders") == 0)  # the store counts no finished run
    assert keeper.take("orders") == numbered(50)


def test_redrive_kept_by_a_foreign_finalizer_stops(
    operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    prepared(seen, keeper, 200)
    document = redrive("slow", "orders", rate=40)
    seen.apply({**document, "metadata": {"name": "slow", "finalizers": ["example.org/hold"]}})
    eventually(lambda: keeper.stats("orders")["redriven"] >= 10)
    seen.delete("redrive", "slow", patience_s=0)
    eventually(lambda: keeper.runs("orders") == 0)
    moved = keeper.stats("orders")["redriven"]
    time.sleep(1.0)  # forty more would have been moved
    assert keeper.stats("orders")["redriven"] <= moved + 10
    seen.finalizers("redrive", "slow")


def test_recreated_redrive_stops_the_old_one(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check that a recreated Redrive stops the old one, in either order of the events."""
    seen.declared(*map(queue, ("orders", "old", "new")))
    keeper.kill("orders", 400)
    for name in ("one", "two"):
        seen.apply(redrive(name, "orders", target="old", rate=40))
        eventually(lambda name=name: seen.get("redrive", name).get("status", {}).get("moved"))
        # none of them exists
        seen.renew(redrive(name, "orders", target="new", filter={"reasons": ["expired"]}))
        seen.becomes("redrive", name, "True", "Complete")
        moved = keeper.stats("orders")["redriven"]
        time.sleep(1.0)  # the old one would have moved forty more
        assert keeper.stats("orders")["redriven"] <= moved + 10  # of a step in progress
        assert progress_of(seen, name) == (0, 0, 0)


def test_complete_redrive_is_not_started_again(new_operator: NewOperator, seen: Seen, keeper: Keeper) -> None:
    first = new_operator().ready()
    prepared(seen, keeper)
    seen.apply(redrive("again", "orders"))
    seen.becomes("redrive", "again", "True", "Complete")
    keeper.kill("orders", 2, "refused", first=5)
    first.kill()
    second = new_operator().ready()
    eventually(lambda: second.metric("penstock_operator_resources", kind="redrives", reason="Complete") == 1)
    assert keeper.stats("orders")["redriven"] == 5


def test_target_in_another_domain_is_refused_without_letters_too(
    operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    seen.declared(queue("orders"), queue("elsewhere", domain="second"))
    names = {"preview": True, "move": False}
    seen.apply(*(redrive(name, "orders", target="elsewhere", dryRun=dry) for name, dry in names.items()))
    for name in names:
        found = seen.becomes("redrive", name, "False", "Failed")
        assert "queue 'elsewhere' is in another domain" in found["message"]
