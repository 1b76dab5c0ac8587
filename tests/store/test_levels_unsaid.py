"""The ack level of who says none: the table in docs/guarantees.md, "What a yes survives"."""

from __future__ import annotations

import pytest

from services.store.errors import AckLevelRefused
from services.store.probe import Promises
from services.store.spec import QueueSpec

SYNCS = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}
LAZY = {**SYNCS, "appendfsync": "everysec"}


def promises(mode: str, replicas: int, settings: dict[str, str]) -> Promises:
    return Promises("redis", "7.4.0", mode, replicas, settings)


@pytest.mark.parametrize(
    ("mode", "replicas", "settings", "level"),
    [
        ("single", 0, SYNCS, "fsync"),
        ("single", 2, SYNCS, "fsync"),
        ("single", 0, LAZY, "memory"),
        ("single", 2, LAZY, "memory"),
        ("single", 0, {}, "memory"),
        ("sentinel", 0, SYNCS, "memory"),
        ("sentinel", 1, LAZY, "replicated:1"),
        ("sentinel", 2, SYNCS, "replicated:1"),
        ("cluster", 3, SYNCS, "replicated:1"),
    ],
)
def test_what_clients_make_has_what_the_store_keeps_unasked(
    mode: str, replicas: int, settings: dict[str, str], level: str
) -> None:
    there = promises(mode, replicas, settings)
    assert there.strongest == level
    there.check(level)


@pytest.mark.parametrize(
    ("mode", "settings", "advice"),
    [
        ("sentinel", SYNCS, "use replicated:1"),
        ("cluster", SYNCS, "use replicated:1"),
        ("single", LAZY, "memory"),
    ],
)
def test_a_document_means_fsync_and_is_refused_where_that_cannot_be(
    mode: str, settings: dict[str, str], advice: str
) -> None:
    said_nothing = QueueSpec().ack_level
    promises("single", 0, SYNCS).check(said_nothing)
    with pytest.raises(AckLevelRefused, match=advice):
        promises(mode, 1, settings).check(said_nothing)
