"""Test the plan of a run, frozen before it begins (docs/analytics.md, "Missing entries")."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from services.analytics.files import Files
from services.analytics.hours import hour_at, later
from services.analytics.places import OutputError
from services.analytics.plan import Plan
from services.analytics.planning import LaxerPlan, freeze
from services.analytics.publish import done_file, plan_file, read_state
from services.analytics.run import run
from services.analytics.settings import Settings, Shape
from services.analytics.state import STATE, State
from services.redis_stream.losses import DataLoss
from services.store.model.keys import DomainKeys, RegistryKeys
from tests.redis_stream.entries import Entries
from tests.redis_stream.streams import EDGE
from tests.servers import Server

KEY = DomainKeys("main").samples


def test_a_first_run_misses_nothing_of_what_was_trimmed_before_it(server: Server, tmp_path: Path) -> None:
    """Check that earlier trimming is no loss: its time is unknown, and reports would warn for a day."""
    store = Entries(server)
    fields = [word for pair in EDGE.items() for word in pair]
    ids = [server.call("XADD", KEY, "*", *fields).decode() for _ in range(10)]
    server.call("XTRIM", KEY, "MAXLEN", 4)
    settings, files = Settings(server.url, str(tmp_path), "r1"), Files(str(tmp_path))
    first = freeze(settings, files, State())
    assert (first.streams[KEY].expected, first.streams[KEY].end) == (4, ids[-1])
    state = State(streams={KEY: ids[2]}, added={KEY: 3}, now_ms=store.now_ms())
    accepted = replace(settings, shape=replace(settings.shape, fail_on_loss=False))
    assert freeze(accepted, files, state).streams[KEY].expected == 7


def test_of_another_store_no_hour_is_closed(server: Server, tmp_path: Path) -> None:
    """Check that entries of any age are added to the tables."""
    store, files = Entries(server), Files(str(tmp_path))
    now = store.now_ms()
    store.letter("a", now - 100 * 3_600_000)
    state = State(now_ms=now, dataset="other", newest=hour_at(now), streams={KEY: "5-1"}, added={KEY: 3})
    settings = Settings(server.url, str(tmp_path), "r1")
    assert freeze(replace(settings, accept_store=True), files, state).closed == ""
    same = replace(state, dataset="abc", streams={}, added={})
    assert freeze(settings, files, same).closed == later(hour_at(now), -48)


def test_nothing_is_planned_where_nobody_knows_what_was_read(server: Server, tmp_path: Path) -> None:
    """Check a missing state: refused if runs have ended, accepted if one was only planned."""
    files, spark = Files(str(tmp_path)), cast(SparkSession, None)
    files.write_json(plan_file("r0"), {})
    assert read_state(files) == State()
    files.write_json(done_file("r0"), {"now_ms": 5})
    with pytest.raises(OutputError, match=r"state.json is missing.*restore it from a backup"):
        run(spark, Settings(server.url, str(tmp_path), "r1"))
    assert [each.name for each in files.list("runs")] == ["r0"]
    files.write_json(STATE, State(last_run="r0").to_json())
    assert read_state(files).last_run == "r0"


def test_a_loss_that_is_accepted_is_in_the_plan(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Check streams that vanished or were rolled back: the size of the loss is unknown."""
    store, files = Entries(server), Files(str(tmp_path))
    store.letter("a", store.now_ms())
    strict = Settings(server.url, str(tmp_path), "r1")
    accepted = replace(strict, shape=replace(strict.shape, fail_on_loss=False))
    letters = store.queue("a")
    before: dict[str, State] = {
        KEY: State(streams={KEY: "5-1"}, added={KEY: 3}),
        letters: State(streams={letters: "9999999999999-0"}, added={letters: 1}),
    }
    for key, state in before.items():
        with pytest.raises(DataLoss, match="use --no-fail-on-data-loss to continue"):
            freeze(strict, files, state)
        caplog.clear()
        plan = freeze(accepted, files, state)
        assert plan.lost_streams == [key]
        assert key in caplog.text
        assert Plan.from_json(plan.to_json()) == plan


def test_a_stream_that_was_made_anew_is_told_of(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Check a stream with later ids but fewer entries than were read."""
    store, files = Entries(server), Files(str(tmp_path))
    letter = store.letter("a", store.now_ms())
    key = store.queue("a")
    state = State(streams={key: letter}, added={key: 7})
    plan = freeze(Settings(server.url, str(tmp_path), "r1"), files, state)
    assert plan.lost_streams == [key]
    assert "had 7 entries when it was read, but now counts 1" in caplog.text


def test_a_plan_that_misses_nothing_can_be_carried_out_by_a_program_of_before(
    server: Server, tmp_path: Path
) -> None:
    store = Entries(server)
    store.letter("a", store.now_ms())
    told: dict[str, Any] = freeze(
        Settings(server.url, str(tmp_path), "r1"), Files(str(tmp_path)), State()
    ).to_json()
    assert "lost_streams" not in told
    assert Plan.from_json(told).lost_streams == []


@pytest.mark.parametrize(
    ("flag", "then", "now"),
    [
        ("redact", Shape(), Shape(redact=(r"password=\w+",))),
        ("redact", Shape(redact=("a", "b")), Shape(redact=("b", "c"))),
        ("bodies", Shape(bodies="full"), Shape()),
        ("bodies", Shape(bodies="0"), Shape()),
        ("bodies", Shape(bodies="100"), Shape(bodies="99")),
        ("bodies", Shape(bodies="full"), Shape(bodies="99")),
    ],
)
def test_a_plan_that_keeps_more_than_is_wanted_now_is_not_carried_out(
    server: Server, tmp_path: Path, flag: str, then: Shape, now: Shape
) -> None:
    """Check that it fails before any work: there is no Spark session."""
    store, files, spark = Entries(server), Files(str(tmp_path)), cast(SparkSession, None)
    store.letter("a", store.now_ms())
    plan = freeze(Settings(server.url, str(tmp_path), "r1", then), files, State())
    files.write_json(plan_file("r1"), plan.to_json())
    wanted = rf"run r1 was planned with other flags.*\(--{flag}\): remove file://.*/runs/r1 so that"
    for name in ("r1", "r2"):
        with pytest.raises(LaxerPlan, match=wanted):
            run(spark, Settings(server.url, str(tmp_path), name, now))
    assert [each.name for each in files.list("runs/r1")] == ["plan.json"]


def test_a_shape_that_keeps_no_more_is_no_laxer() -> None:
    strict = Shape(bodies="10", redact=("a", "b"), retention_days=7)
    for other in (strict, Shape(bodies="10", redact=("b",), retention_days=7), Shape(bodies="full", top=1)):
        assert strict.laxer_than(other) == []


def test_letters_of_a_queue_that_was_deleted_are_in_no_plan(server: Server, tmp_path: Path) -> None:
    """Check that letters deleted with their queue count neither as gone nor as lost."""
    store = Entries(server)
    for queue in ("kept", "deleted"):
        store.letter(queue, store.now_ms())
    settings, files = Settings(server.url, str(tmp_path), "r1"), Files(str(tmp_path))
    kept, deleted = store.queue("kept"), store.queue("deleted")
    first = freeze(settings, files, State())
    for queue in ("kept", "deleted"):
        store.letter(queue, store.now_ms())
    server.call("HDEL", RegistryKeys().queues, "deleted")
    server.call("DEL", deleted)
    ends = {key: each.end for key, each in first.streams.items()}
    read = State(streams=ends, added={key: each.added for key, each in first.streams.items()})
    plan = freeze(settings, files, read)
    assert (plan.streams[kept].expected, plan.streams[deleted].expected) == (1, 0)
    assert plan.streams[deleted].start == plan.streams[deleted].end
    assert plan.lost_streams == []
