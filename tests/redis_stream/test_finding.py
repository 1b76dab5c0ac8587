"""Test missing streams, queues and domains: given names are refused, with the existing ones."""

from __future__ import annotations

import json
import logging

import pytest

from services.redis_stream.finding import listed, streams, tell_of_loss
from services.redis_stream.following import Following
from services.redis_stream.losses import DataLoss
from services.redis_stream.options import OptionError, Options
from services.redis_stream.source import RedisReader
from services.store.catalogue.reading import StreamReader
from services.store.model.keys import DomainKeys
from tests.redis_stream.entries import Entries
from tests.servers import Server

SAMPLES = DomainKeys("main").samples


@pytest.fixture
def store(server: Server) -> Entries:
    found = Entries(server)
    found.letter("a", found.now_ms())
    found.letter("b", found.now_ms())
    return found


def options(store: Entries, kind: str, **told: str) -> Options:
    return Options.parse({"url": store.server.url, "kind": kind, **told})


def planned(asked: Options) -> int:
    return len(RedisReader(asked, ["id"]).partitions())


@pytest.mark.parametrize("name", ["start", "end"])
@pytest.mark.parametrize("kind", ["dead", "samples", "entries"])
def test_a_stream_that_is_not_there_is_refused(store: Entries, kind: str, name: str) -> None:
    key = {"dead": store.queue("a"), "samples": SAMPLES, "entries": "s"}[kind]
    store.server.call("XADD", key, "*", "x", "1")
    of_kind = {"stream": "s"} if kind == "entries" else {}
    for place in ("5-0", json.dumps({key: "5-0"})):
        planned(options(store, kind, **of_kind, **{name: place}, failOnDataLoss="false"))
    wrong = options(store, kind, **of_kind, **{name: json.dumps({key: "5-0", key + "x": "5-0"})})
    why = f"option {name} names '{key}x', which is not among the streams that are read: .*{key}"
    with pytest.raises(OptionError, match=why.replace("{", r"\{").replace("}", r"\}")):
        planned(wrong)
    with pytest.raises(OptionError, match="not among the streams"):
        Following(wrong, ["id"]).initialOffset()


def test_where_a_loss_is_no_failure_it_is_told(store: Entries, caplog: pytest.LogCaptureFixture) -> None:
    """Check that a deleted queue with a saved position is logged."""
    end = json.dumps({store.queue("a"): "9999999999999-0", "gone": "5-0"})
    with caplog.at_level(logging.WARNING):
        assert planned(options(store, "dead", end=end, failOnDataLoss="false")) == 1
    assert "option end names 'gone'" in caplog.text


def test_a_plan_of_the_job_may_name_what_was_deleted_meanwhile(store: Entries) -> None:
    asked = options(store, "dead", end=json.dumps({"gone": "5-0", store.queue("a"): "9999999999999-0"}))
    with StreamReader(store.server.url) as reading:
        assert [stream.queue for stream in streams(reading, asked)] == ["a"]


def test_a_key_that_is_not_there_is_told(store: Entries, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert planned(options(store, "entries", stream="nosuch")) == 0
    assert "stream 'nosuch' does not exist; nothing is read" in caplog.text


def test_an_unknown_queue_is_told_which_there_are(store: Entries) -> None:
    with pytest.raises(OptionError, match=r"unknown queue 'c'; known queues: a, b$"):
        planned(options(store, "dead", queue="a,c"))


def test_of_many_names_some_are_told() -> None:
    assert listed([]) == "none"
    assert listed(["b", "a"]) == "a, b"
    many = [f"q{number:02d}" for number in range(30)]
    assert listed(many) == f"{', '.join(many[:20])}, ... (30)"


def test_a_loss_names_the_option_and_the_jobs_flag() -> None:
    with pytest.raises(DataLoss, match=r"failOnDataLoss=false \(the job: --no-fail-on-data-loss\)"):
        tell_of_loss(Options("redis://127.0.0.1"), "it was trimmed")
