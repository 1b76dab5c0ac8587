"""Run the commands of docs/tracing.md as written with a real collector, and check that its tables are complete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.kit.tracing.measures import DROPPED, FAILED, LIMITED, SPANS
from tests.cli.shell import ANY_PORT
from tests.docs.bench import Bench, commands
from tests.servers import eventually
from tests.tmq.process import ROOT
from tests.tracing.collector import Collector

PAGE = (ROOT / "docs/tracing.md").read_text()
PORT = "4318"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    collector = Collector(tmp_path / "collector").start()
    yield collector
    collector.stop()


@pytest.fixture
def bench(tmp_path: Path, collector: Collector) -> Iterator[Bench]:
    bench = Bench(tmp_path, "ring", lambda line: line.replace(PORT, str(collector.port)))
    bench.environment |= ANY_PORT
    yield bench
    bench.clear()


def test_the_commands(bench: Bench, collector: Collector) -> None:
    for command in commands("docs/tracing.md", "## Try it"):
        if command.line.startswith("export "):
            name, _, value = command.line.removeprefix("export ").partition("=")
            bench.environment[name] = value.replace(PORT, str(collector.port))
        else:
            bench.follow(command)
    bench.press_ctrl_c()
    names = re.search(r"now has three more spans: (.*)\.", PAGE)
    assert names is not None
    wanted = set(re.findall(r"`([^`]+)`", names[1]))
    eventually(lambda: {span.name for span in collector.spans() if span.trace_id == TRACE} == wanted)
    (sent,) = collector.of_name("send orders")
    assert sent.parent_id == "00f067aa0ba902b7"
    assert sent.service == "penstock-cli"


def test_page_names_labels_of_span_counters() -> None:
    assert f'{SPANS.name}{{result="{FAILED}"}}' in PAGE
    assert f'"{DROPPED}"' in PAGE
    assert f"`{LIMITED}`" in PAGE
