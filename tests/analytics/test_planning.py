"""What a run is to read, frozen before it begins (docs/analytics.md, "What is missing")."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from services.analytics.files import Files
from services.analytics.planning import freeze
from services.analytics.settings import Settings
from services.analytics.state import State
from services.store.keys import DomainKeys
from tests.analytics.spark.entries import Entries
from tests.analytics.streams import EDGE
from tests.servers import Server

KEY = DomainKeys("main").samples


def test_a_first_run_misses_nothing_of_what_was_trimmed_before_it(server: Server, tmp_path: Path) -> None:
    """Nobody knows when that was: a report that said so would sound for a day. Later runs miss what was for them."""
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
