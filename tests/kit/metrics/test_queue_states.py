"""How queues stand, as metrics: bounded, and sums that never lie about what happened."""

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


def test_without_names_all_queues_are_one() -> None:
    states = QueueStates(0)
    states.update(Seen({"a": State(1, 2, 3, 4, 5, 6.5), "b": State(10, 20, 30, 40, 50, 0.5)}))
    assert shown(states, "queues") == {"": 2}
    assert shown(states, "queue_ready_messages") == {OTHER: 11}
    assert shown(states, "queue_in_flight_messages") == {OTHER: 22}
    assert shown(states, "queue_dead_messages") == {OTHER: 33}
    assert shown(states, "queue_bytes") == {OTHER: 55}
    assert shown(states, "queue_oldest_age_seconds") == {OTHER: 6.5}


def test_the_fullest_queue_is_not_hidden_among_others() -> None:
    """Whatever holds most has a name: it may have no bounds."""
    states = QueueStates(1)
    states.update(Seen({"huge": State(1000), "small": State(9, used=0.9), "empty": State(used=0.1)}))
    assert shown(states, "queue_used_ratio") == {"huge": 0, OTHER: 0.9}


def test_an_empty_store_has_no_messages() -> None:
    states = QueueStates(5)
    states.update(Seen({}))
    assert shown(states, "queues") == {"": 0}
    assert shown(states, "queue_dead_messages") == {OTHER: 0}


def test_nothing_is_told_while_nobody_can_look() -> None:
    states = QueueStates(5)
    assert shown(states, "queue_ready_messages") == {}
    states.update(Seen({"a": State(1)}))
    states.update(None)
    assert shown(states, "queue_ready_messages") == {}


def test_those_that_hold_most_have_names_and_keep_them() -> None:
    states = QueueStates(2)
    states.update(Seen({"a": State(1), "b": State(dead=9), "c": State(3)}))
    assert shown(states, "queue_ready_messages") == {"b": 0, "c": 3, OTHER: 1}
    states.update(Seen({"a": State(1000), "b": State(), "c": State(3)}))
    assert shown(states, "queue_ready_messages") == {"b": 0, "c": 3, OTHER: 1000}
    states.update(Seen({"a": State(1000), "c": State(3), "d": State(7)}))
    assert shown(states, "queue_ready_messages") == {"a": 1000, "c": 3, OTHER: 7}


def test_deaths_are_counted_from_the_first_look_on() -> None:
    states = QueueStates(1)
    states.update(Seen({"a": State(9, died=5), "b": State(died=7)}))
    assert shown(states, "queue_died_messages_total") == {"a": 0, OTHER: 0}
    states.update(Seen({"a": State(9, died=6), "b": State(died=9), "new": State(died=1)}))
    assert shown(states, "queue_died_messages_total") == {"a": 1, OTHER: 3}


def test_a_sum_of_deaths_never_falls() -> None:
    """What is deleted, or made anew with another count, takes nothing away."""
    states = QueueStates(0)
    states.update(Seen({}))
    assert shown(states, "queue_died_messages_total") == {OTHER: 0}
    states.update(Seen({"a": State(died=5), "b": State(died=7)}))
    states.update(Seen({"b": State(died=8)}))
    states.update(None)
    states.update(Seen({"a": State(died=2), "b": State(died=1)}))
    assert shown(states, "queue_died_messages_total") == {OTHER: 15}


def test_dead_letters_that_were_dropped_are_counted() -> None:
    states = QueueStates(0)
    states.update(Seen({"a": State(dead_overflowed=7)}))
    assert shown(states, "queue_dead_trimmed_messages_total") == {OTHER: 0}
    states.update(Seen({"a": State(dead_overflowed=9), "b": State(dead_overflowed=1)}))
    assert shown(states, "queue_dead_trimmed_messages_total") == {OTHER: 3}


def test_a_series_is_told_as_0_before_it_rises() -> None:
    """Else its first deaths were nobody's increase: they are told of the others until somebody has read it."""
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


def test_names_that_look_the_same_are_summed_up() -> None:
    states = QueueStates(5)
    states.update(Seen({chr(0xDCFF): State(1), chr(0xDCFE): State(2)}))
    assert shown(states, "queue_ready_messages") == {"\ufffd": 3, OTHER: 0}


def test_what_rises_before_anybody_has_read_the_first_0_is_told_behind_it() -> None:
    """Looks are more frequent than scrapes: a first value that is more than 0 is no increase of anybody's."""
    states = QueueStates(0)
    states.update(Seen({"a": State(died=5)}))
    states.update(Seen({"a": State(died=8)}))
    assert shown(states, "queue_died_messages_total") == {OTHER: 0}
    states.update(Seen({"a": State(died=9)}))
    assert shown(states, "queue_died_messages_total") == {OTHER: 4}


def test_one_that_cannot_be_read_hides_no_other() -> None:
    """It keeps its name, and what happened meanwhile is told once it can be read, and nothing else."""
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


def test_what_the_store_counts_of_queues_is_told() -> None:
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


def test_the_page_says_how_many_series_a_queue_has() -> None:
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    assert f"`penstock_queue_ready_messages` and the like, {len(SHOWN) + len(COUNTED)} series a queue" in page
