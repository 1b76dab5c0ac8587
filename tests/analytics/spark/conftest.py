"""A store for runs of the job, and a run that others are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from services.store.model.keys import RegistryKeys
from services.store.redis import analytics_rules
from tests.analytics.spark.carried_out import carry_out
from tests.redis_stream.entries import Entries, fill_letters, fill_samples
from tests.servers import PROGRAMS, Server
from tests.stores import random_generator

LETTERS = 150
PASSWORD = "pl4nted"
HOURS = 3


@pytest.fixture
def store(running: Server) -> Entries:
    """Return a store with an empty catalogue."""
    running.clear()
    return Entries(running)


def with_password(store: Entries) -> str:
    """Return the URL of the store for the user that `done` has made."""
    return f"redis://analytics:{PASSWORD}@127.0.0.1:{store.server.port}"


@dataclass(frozen=True)
class Done:
    """An undisturbed run over some hours, all of which the report covers."""

    store: Entries
    output: Path
    run: dict[str, Any]
    report: bytes  # in the store


@pytest.fixture(scope="session")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """Carry out a run with the rights of `penstock store rights --for analytics`."""
    folder, chance = tmp_path_factory.mktemp("done"), random_generator()
    server = Server(next(iter(PROGRAMS)), folder / "store").start()
    try:
        store = Entries(server)
        fill_letters(store, chance, LETTERS, HOURS, queues=("a", "b", "<script>"))
        fill_samples(store, chance, 12 * HOURS, HOURS)
        server.call("ACL", "SETUSER", "analytics", *analytics_rules(), f">{PASSWORD}")
        url = with_password(store)
        run = carry_out(spark, store, folder / "out", store=url)
        report = server.call("GET", RegistryKeys().report).partition(b" ")[2]
        yield Done(store, folder / "out", run, report)
    finally:
        server.end()
