"""Test Queues with the same name or number: the oldest gets it (docs/kubernetes.md, "Conflicts")."""

from __future__ import annotations

import time
from typing import Any

from tests.kubernetes.fixtures import NewNamespace
from tests.operator.conftest import NewOperator
from tests.operator.keeper import Keeper
from tests.operator.program import OperatorProgram
from tests.operator.resource_documents import Seen, peer, queue
from tests.servers import eventually

MCA_7 = {"rqpMca": {"queueId": 7}}


def a_second_later(seen: Seen, kind: str, name: str) -> None:
    """Wait a second, because ages of resources are in whole seconds."""
    made = seen.get(kind, name)["metadata"]["creationTimestamp"]
    eventually(lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > made)


def test_same_name_in_two_namespaces(
    new_operator: NewOperator, new_namespace: NewNamespace, seen: Seen, keeper: Keeper
) -> None:
    other = Seen(seen.cluster, new_namespace())
    new_operator(namespaces=f"{seen.namespace},{other.namespace}").ready()
    seen.declared(queue("orders", maxLength=1))
    a_second_later(seen, "queue", "orders")
    other.apply(queue("mine", queueName="orders", maxLength=2))
    found = other.becomes("queue", "mine", "False", "Conflict")
    assert f"belongs to the older Queue 'orders' in namespace '{seen.namespace}'" in found["message"]
    assert keeper.owner("orders") == f"kubernetes {seen.namespace}/orders"
    keeper.put("orders", b"one")
    seen.delete("queue", "orders")
    other.becomes("queue", "mine", "True", "Declared", 2.0)
    assert keeper.owner("orders") == f"kubernetes {other.namespace}/mine"
    assert keeper.take("orders") == [b"one"]


def test_same_number(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    seen.declared(queue("old", bindings=MCA_7))
    a_second_later(seen, "queue", "old")
    seen.apply(queue("new", bindings=MCA_7))
    found = seen.becomes("queue", "new", "False", "Conflict")
    assert found["message"] == (
        f"taken by an older Queue: rqp-mca 7 (Queue {seen.namespace}/old); choose other numbers or delete one of them"
    )
    assert keeper.find("new") is None
    seen.apply(queue("old", bindings={"rqpMca": {"queueId": 8}}))
    seen.becomes("queue", "new", "True", "Declared", 2.0)


def test_oldest_queue_takes_a_number_from_a_younger_one(
    operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    """Check that a queue that loses its number to an older one keeps its messages and is reached by its name."""
    seen.declared(queue("old"))
    a_second_later(seen, "queue", "old")
    seen.declared(queue("new", bindings=MCA_7))
    keeper.put("new", b"one")
    seen.apply(queue("old", bindings=MCA_7))
    seen.becomes("queue", "new", "False", "Conflict")
    seen.becomes("queue", "old", "True", "Declared")
    assert keeper.spec("old").bindings.rqp_mca.queue_id == 7
    assert keeper.take("new") == [b"one"]


def mca(name: str, number: int) -> dict[str, Any]:
    return queue(name, bindings={"rqpMca": {"queueId": number}})


def mca_of(document: dict[str, Any]) -> int:
    given: int = document["spec"]["bindings"]["rqpMca"]["queueId"]
    return given


def number(keeper: Keeper, name: str) -> int | None:
    return keeper.spec(name).bindings.rqp_mca.queue_id


def two_with_numbers(seen: Seen) -> None:
    """Declare `old` with number 17 and `new` with 18."""
    seen.declared(mca("old", 17))
    a_second_later(seen, "queue", "old")
    seen.declared(mca("new", 18))


def test_two_queues_swap_numbers(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check that two queues can swap numbers, in any order of events."""
    two_with_numbers(seen)
    keeper.put("new", b"one")
    for swapped in ([mca("old", 18), mca("new", 17)], [mca("new", 18), mca("old", 17)]):
        seen.apply(*swapped)
        for name in ("old", "new"):
            seen.becomes("queue", name, "True", "Declared", 10.0)  # without a full pass
        found = {name: number(keeper, name) for name in ("old", "new")}
        assert found == {each["metadata"]["name"]: mca_of(each) for each in swapped}
    assert keeper.take("new") == [b"one"]


def test_three_queues_swap_numbers_while_the_operator_is_down(
    new_operator: NewOperator, seen: Seen, keeper: Keeper
) -> None:
    first = new_operator().ready()
    two_with_numbers(seen)
    seen.declared(mca("third", 19))
    first.kill()
    seen.apply(mca("old", 18), mca("new", 19), mca("third", 17))
    new_operator().ready()
    for name, has in (("old", 18), ("new", 19), ("third", 17)):
        seen.becomes("queue", name, "True", "Declared", 10.0)
        assert number(keeper, name) == has


def test_queue_that_lost_a_number_keeps_none(operator: OperatorProgram, seen: Seen, keeper: Keeper) -> None:
    """Check that a queue that lost a number does not keep its previous one, which it no longer claims."""
    two_with_numbers(seen)
    seen.apply(mca("new", 17))
    seen.becomes("queue", "new", "False", "Conflict")
    seen.declared(mca("third", 18))
    assert (number(keeper, "new"), number(keeper, "third")) == (None, 18)


def test_queue_without_its_number_is_counted(new_operator: NewOperator, seen: Seen, keeper: Keeper) -> None:
    """Check that a queue without its number has a count for scaling; a Queue without a queue has no count."""
    operator = new_operator(sweep_s=1, queue_metrics="true").ready()
    two_with_numbers(seen)
    seen.apply(mca("new", 17), mca("third", 17))
    for name in ("new", "third"):
        seen.becomes("queue", name, "False", "Conflict")
    keeper.put("new", b"one", b"two", b"three")
    depth = f'penstock_operator_queue_depth{{name="%s",namespace="{seen.namespace}"}} %s'
    eventually(lambda: depth % ("new", 3.0) in operator.page("metrics")[1])
    assert depth % ("third", 0.0) in operator.page("metrics")[1]


def test_two_queues_with_one_target(operator: OperatorProgram, seen: Seen) -> None:
    seen.apply(peer("shop"), peer("depot"))
    seen.declared(queue("all", remote={"protocol": "rqp-mca", "queueId": 7}))
    a_second_later(seen, "queue", "all")
    seen.apply(queue("some", remote={"protocol": "rqp-mca", "queueId": 7, "peers": ["shop"]}))
    seen.becomes("queue", "some", "False", "Conflict")
    seen.apply(queue("all", remote={"protocol": "rqp-mca", "queueId": 7, "peers": ["depot"]}))
    seen.becomes("queue", "some", "True", "Declared")


def test_target_stays_until_its_queue_releases_it(
    operator: OperatorProgram, seen: Seen, keeper: Keeper
) -> None:
    """Check that a target stays with a queue that has messages in transit, when an older Queue claims it later."""

    def leading(number: int) -> dict[str, object]:
        return {"protocol": "rqp-mca", "queueId": number}

    seen.declared(queue("old", remote=leading(8)))
    a_second_later(seen, "queue", "old")
    seen.declared(queue("new", remote=leading(7)))
    keeper.put("new", b"on its way")
    seen.apply(queue("old", remote=leading(7)))
    for name in ("old", "new"):
        seen.becomes("queue", name, "False", "Conflict")
    assert (leads(keeper, "old"), leads(keeper, "new")) == (8, 7)
    assert keeper.stats("new")["ready"] == 1
    seen.apply(queue("new", remote=leading(9)))
    for name in ("old", "new"):
        seen.becomes("queue", name, "True", "Declared")
    assert (leads(keeper, "old"), leads(keeper, "new")) == (7, 9)


def leads(keeper: Keeper, name: str) -> int | None:
    """Return the remote number of the queue."""
    remote = keeper.spec(name).remote
    return remote.queue_id if remote else None
