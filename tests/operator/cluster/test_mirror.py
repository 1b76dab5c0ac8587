"""Test the local copy of the cluster's objects, with watches and lists that overtake each other."""

from __future__ import annotations

from dataclasses import replace

from penstock_operator.cluster.mirror import Mirror
from penstock_operator.cluster.resources import Kind, Resource

from tests.operator.queues.test_claims import resource


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def at(version: int, **changes: object) -> Resource:
    return replace(resource("orders"), version=version, **changes)  # type: ignore[arg-type]


def test_outdated_event_is_ignored() -> None:
    mirror = Mirror(Clock())
    mirror.put(at(5, status={"depth": 1}))
    mirror.put(at(4))
    (known,) = mirror
    assert known.version == 5
    assert mirror.replace(Kind.QUEUE, "shop", [at(3)], since=0) == []
    (known,) = mirror
    assert known.status == {"depth": 1}


def test_object_missing_in_a_list_is_deleted() -> None:
    mirror = Mirror(clock := Clock())
    mirror.put(at(5))
    assert mirror.replace(Kind.PEER, "", [], since=clock()) == []
    assert mirror.replace(Kind.QUEUE, "another", [], since=clock()) == []
    (lost,) = mirror.replace(Kind.QUEUE, "", [], since=clock())
    assert lost == at(5)
    assert mirror.of(Kind.QUEUE) == []


def test_object_created_during_a_list_stays() -> None:
    mirror = Mirror(clock := Clock())
    since = clock()
    mirror.put(at(5))
    assert mirror.replace(Kind.QUEUE, "shop", [], since) == []
    assert len(mirror.of(Kind.QUEUE)) == 1


def test_object_deleted_during_a_list_stays_deleted() -> None:
    mirror = Mirror(clock := Clock())
    mirror.put(at(5))
    since = clock()
    mirror.delete(at(6))
    mirror.replace(Kind.QUEUE, "shop", [at(5)], since)
    assert mirror.of(Kind.QUEUE) == []
    mirror.put(at(7, uid="another of the name"))
    assert len(mirror.of(Kind.QUEUE)) == 1


def test_deletion_of_the_previous_object_of_a_name() -> None:
    mirror = Mirror(Clock())
    mirror.put(at(7, uid="new"))
    mirror.delete(at(6))
    assert [each.uid for each in mirror] == ["new"]


def test_late_event_of_the_previous_object_of_a_name() -> None:
    mirror = Mirror(Clock())
    mirror.put(at(9, uid="new"))
    mirror.put(at(7))
    mirror.delete(at(8))
    assert [each.uid for each in mirror] == ["new"]


def test_decreasing_versions_after_a_restore() -> None:
    """Check that a later list with lower versions replaces the copy, as after a restore of etcd."""
    mirror = Mirror(clock := Clock())
    mirror.put(at(9, status={"depth": 1}))
    since = clock()
    assert mirror.replace(Kind.QUEUE, "shop", [at(3)], since) == []
    (known,) = mirror
    assert (known.version, known.status) == (3, {})
    mirror.put(at(4))
    (known,) = mirror
    assert known.version == 4


def test_object_restored_from_a_backup() -> None:
    mirror = Mirror(clock := Clock())
    mirror.put(at(5))
    mirror.delete(at(6))
    mirror.replace(Kind.QUEUE, "shop", [at(3)], clock())
    (known,) = mirror
    assert known.version == 3


def test_listed_namespace_is_known() -> None:
    mirror = Mirror(clock := Clock())
    assert not mirror.knows_something
    mirror.put(at(5))
    assert not mirror.knows(Kind.QUEUE, "shop")
    mirror.replace(Kind.QUEUE, "shop", [at(5)], since=clock())
    assert mirror.knows_something
    assert mirror.knows(Kind.QUEUE, "shop")
    assert not mirror.knows(Kind.QUEUE, "another")
    assert not mirror.knows(Kind.PEER, "shop")
    mirror.replace(Kind.QUEUE, "", [at(5)], since=clock())
    assert mirror.knows(Kind.QUEUE, "another")


def test_recreated_object_differs() -> None:
    mirror = Mirror(Clock())
    mirror.put(at(5))
    assert mirror.has(at(4, status={"depth": 1}))
    assert not mirror.has(at(6, uid="another"))
    mirror.delete(at(5))
    assert not mirror.has(at(5))
