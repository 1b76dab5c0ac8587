"""Test metrics of the state of queues: bounded labels and monotonic counters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from services.kit.metrics.queue_names import OTHER
from services.kit.metrics.queue_states import COUNTED, SHOWN, QueueStates


@dataclass
class State:
    ready: int = 0
    in_flight: int = 0
    dead: int = 0
    died: int = 0
    octets: int = 0
    oldest_age_s: float = 0.0
    dead_overflowed: int = 0
    used: float = 0.0
    redriven: int = 0
    purged: int = 0
    emptied: int = 0
    expired: int = 0
    duplicates: int = 0
    fenced: int = 0


@dataclass
class Seen:
    queues: Mapping[str, State]
    unreadable: Collection[str] = ()


def shown(states: QueueStates, what: str) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(states)
    families = text_string_to_metric_families(generate_latest(registry).decode())
    samples = [sample for family in families for sample in family.samples]
    return {
        sample.labels.get("queue", ""): sample.value
        for sample in samples
        if sample.name == f"penstock_{what}"
    }


def test_without_labels_all_queues_are_summed_up() -> None:
    states = QueueStates(0)
    states.update(Seen({"a": State(1, 2, 3, 4, 5, 6.5), "b": State(10, 20, 30, 40, 50, 0.5)}))
    assert shown(states, "queues") == {"": 2}
    assert shown(states, "queue_ready_messages") == {OTHER: 11}
    assert shown(states, "queue_in_flight_messages") == {OTHER: 22}
    assert shown(states, "queue_dead_messages") == {OTHER: 33}
    assert shown(states, "queue_bytes") == {OTHER: 55}
    assert shown(states, "queue_oldest_age_seconds") == {OTHER: 6.5}


def test_summed_ratio_is_the_maximum() -> None:
    """Check that the ratio of unnamed queues is their maximum: the largest, named queue may have no bounds."""
    states = QueueStates(1)
    states.update(Seen({"huge": State(1000), "small": State(9, used=0.9), "empty": State(used=0.1)}))
    assert shown(states, "queue_used_ratio") == {"huge": 0, OTHER: 0.9}


def test_empty_store_exports_zeros() -> None:
    states = QueueStates(5)
    states.update(Seen({}))
    assert shown(states, "queues") == {"": 0}
    assert shown(states, "queue_dead_messages") == {OTHER: 0}


def test_metrics_are_absent_while_the_store_is_unreadable() -> None:
    states = QueueStates(5)
    assert shown(states, "queue_ready_messages") == {}
    states.update(Seen({"a": State(1)}))
    states.update(None)
    assert shown(states, "queue_ready_messages") == {}


def test_largest_queues_get_labels_and_keep_them() -> None:
    states = QueueStates(2)
    states.update(Seen({"a": State(1), "b": State(dead=9), "c": State(3)}))
    assert shown(states, "queue_ready_messages") == {"b": 0, "c": 3, OTHER: 1}
    states.update(Seen({"a": State(1000), "b": State(), "c": State(3)}))
    assert shown(states, "queue_ready_messages") == {"b": 0, "c": 3, OTHER: 1000}
    states.update(Seen({"a": State(1000), "c": State(3), "d": State(7)}))
    assert shown(states, "queue_ready_messages") == {"a": 1000, "c": 3, OTHER: 7}


def test_deaths_are_counted_from_the_first_poll() -> None:
    states = QueueStates(1)
    states.update(Seen({"a": State(9, died=5), "b": State(died=7)}))
    assert shown(states, "queue_died_messages_total") == {"a": 0, OTHER: 0}
    states.update(Seen({"a": State(9, died=6), "b": State(died=9), "new": State(died=1)}))
    assert shown(states, "queue_died_messages_total") == {"a": 1, OTHER: 3}


def test_counter_does_not_fall_when_a_queue_is_deleted() -> None:
    """Check that a counter does not fall when a queue is deleted, or recreated with another count."""
    states = QueueStates(0)
    states.update(Seen({}))
    assert shown(states, "queue_died_messages_total") == {OTHER: 0}
    states.update(Seen({"a": State(died=5), "b": State(died=7)}))
    states.update(Seen({"b": State(died=8)}))
    states.update(None)
    states.update(Seen({"a": State(died=2), "b": State(died=1)}))
    assert shown(states, "queue_died_messages_total") == {OTHER: 15}


def test_dropped_dead_letters_are_counted() -> None:
    states = QueueStates(0)
    states.update(Seen({"a": State(dead_overflowed=7)}))
    assert shown(states, "queue_dead_trimmed_messages_total") == {OTHER: 0}
    states.update(Seen({"a": State(dead_overflowed=9), "b": State(dead_overflowed=1)}))
    assert shown(states, "queue_dead_trimmed_messages_total") == {OTHER: 3}


def test_series_is_exported_as_zero_before_it_rises() -> None:
    """Check that a series is exported as zero before it rises.

    Otherwise Prometheus would miss its first increase: it counts as `other` until a scrape has read the zero.
    """
    states = QueueStates(5)
    states.update(Seen({}))
    assert shown(states, "queue_died_messages_total") == {OTHER: 0}
    states.update(Seen({"new": State(dead=3, died=3)}))
    states.update(Seen({"new": State(dead=4, died=4)}))
    assert shown(states, "queue_died_messages_total") == {"new": 0, OTHER: 4}
    states.update(Seen({"new": State(dead=9, died=9)}))
    assert shown(states, "queue_died_messages_total") == {"new": 5, OTHER: 4}
    states.update(Seen({}))
    states.update(Seen({"new": State(dead=1, died=1)}))
    assert shown(states, "queue_died_messages_total") == {"new": 0, OTHER: 5}


def test_names_with_equal_labels_are_summed_up() -> None:
    states = QueueStates(5)
    states.update(Seen({chr(0xDCFF): State(1), chr(0xDCFE): State(2)}))
    assert shown(states, "queue_ready_messages") == {"\ufffd": 3, OTHER: 0}


def test_increases_before_the_first_scrape_are_counted_after_it() -> None:
    """Check that increases before the first scrape are counted after it.

    Polls are more frequent than scrapes, and Prometheus ignores a first value above 0.
    """
    states = QueueStates(0)
    states.update(Seen({"a": State(died=5)}))
    states.update(Seen({"a": State(died=8)}))
    assert shown(states, "queue_died_messages_total") == {OTHER: 0}
    states.update(Seen({"a": State(died=9)}))
    assert shown(states, "queue_died_messages_total") == {OTHER: 4}


def test_unreadable_queue_does_not_hide_others() -> None:
    """Check that an unreadable queue does not hide others.

    It keeps its name, and changes meanwhile are counted once it can be read.
    """
    states = QueueStates(2)
    states.update(Seen({"a": State(1, died=5), "b": State(2, died=70)}, {"first"}))
    assert shown(states, "queues") == {"": 3}
    assert shown(states, "queues_unread") == {"": 1}
    assert shown(states, "queue_died_messages_total") == {"a": 0, "b": 0, OTHER: 0}
    states.update(Seen({"b": State(2, died=71)}, {"a", "first"}))
    assert shown(states, "queue_ready_messages") == {"b": 2, OTHER: 0}
    assert shown(states, "queue_died_messages_total") == {"a": 0, "b": 1, OTHER: 0}
    states.update(Seen({"a": State(1, died=6), "b": State(2, died=71), "first": State(died=1000)}))
    assert shown(states, "queues_unread") == {"": 0}
    assert shown(states, "queue_died_messages_total") == {"a": 1, "b": 1, OTHER: 0}


def test_each_counter_of_a_queue_is_exported() -> None:
    states = QueueStates(0)
    before = Seen({"a": State()})
    states.update(before)
    what = {"redriven": 1, "purged": 2, "expired": 3, "duplicates": 4, "fenced": 5, "emptied": 6}
    names = {
        of: "queue_duplicates_total" if of == "duplicates" else f"queue_{of}_messages_total" for of in what
    }
    assert [shown(states, name) for name in names.values()] == 6 * [{OTHER: 0}]
    states.update(Seen({"a": State(**what)}))
    assert {of: shown(states, name) for of, name in names.items()} == {
        of: {OTHER: n} for of, n in what.items()
    }


def test_document_states_the_series_per_queue() -> None:
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    assert f"`penstock_queue_ready_messages` and the like, {len(SHOWN) + len(COUNTED)} series a queue" in page
