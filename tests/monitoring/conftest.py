"""A separate world for each test, which may kill parts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kubernetes.cluster import Cluster
from tests.monitoring.prometheus import Prometheus
from tests.monitoring.world import World, world

NewPrometheus = Callable[..., Prometheus]


@pytest.fixture(name="world")
def _world(defined: Cluster, namespace: str, tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, defined, namespace) as made:
        yield made


@pytest.fixture
def new_prometheus(tmp_path: Path) -> Iterator[NewPrometheus]:
    """Start a Prometheus that ends with the test."""
    made: list[Prometheus] = []

    def start(*words: object, **more: object) -> Prometheus:
        made.append(Prometheus(tmp_path / f"prometheus{len(made)}", *words, **more))
        return made[-1].start()

    yield start
    for prometheus in made:
        prometheus.end()
