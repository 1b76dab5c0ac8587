"""Test `penstock report`: the latest report of the analytics job (docs/cli.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from services.store import Store
from services.store.model.keys import RegistryKeys
from services.store.report.report import Report
from tests.cli.shell import Shell
from tests.reports import document, report

KEY = RegistryKeys().report


def write(shell: Shell, value: str | bytes) -> None:
    async def put(store: Store) -> None:
        await store.registry.link.call("SET", KEY, value)

    shell.with_store(put)


def give(shell: Shell, one: Report) -> None:
    write(shell, b"%d " % one.now_ms + one.encode())


@pytest.fixture
def clear(shell: Shell) -> Iterator[Shell]:
    yield shell

    async def remove(store: Store) -> None:
        await store.registry.link.call("DEL", KEY)

    shell.with_store(remove)


def test_no_report_yet(clear: Shell) -> None:
    assert clear.fails("report", code=4) == "not_found: no report yet: run the analytics job"
    body = json.loads(clear.run("report", "--json", code=4).err)
    assert (body["error"], body["exit"]) == ("not_found", 4)


def test_report_as_json(clear: Shell) -> None:
    give(clear, report())
    assert clear.run("report", "--json").object == json.loads(json.dumps(document()))


def test_report_as_text(clear: Shell) -> None:
    give(clear, report())
    lines = clear.run("report").text.splitlines()
    assert lines[0].startswith(
        "2025-11-23 17:00 until now, 2025-11-24 16:00:00 UTC (24 hours, 2 with records, the last one incomplete); "
        "run 2025-11-24T16, "
    )
    results = [" ".join(line.split()) for line in lines]
    for wanted in (
        "incomplete: samples lost 15, streams deleted or rewound 2, quarantined 5, too late for the tables 4",
        "published 1,200, 337.6 KiB",
        "refused 6: queue_full 6",
        "error budget used 497.5 %, with an objective of 99.9 %",
        "delivered 1,100",
        "acknowledged 1,000, 283.2 KiB",
        "died 14",
        "dead letters read 12: attempts 9, expired 3",
        "Edges' samples cover 99 % of the messages published: the rest went through no edge.",
        "time until dead p50 3 ms, p90 20 ms, p99 600 ms",
        "redriven 8, dead again 2, success 75 %",
        "read by the run 13 dead letters, 720 samples; quarantined 2, samples lost 5",
        "orders main attempts timeout after 0 ms 9 2025-11-24 15:59:00 1763990000000-0",
        "orders main 12 6 994 900 40 ms 7.5 s",
        "idle main 0 0 206 200 - -",
        "orders main 1,000 6 99.4 % 600 %",
        "2025-11-24 16:00 orders main deaths up 10 1",
        "tmq 10.0.0.1 12",
        "tmq 2 30 44 488.3 KiB 439.5 KiB busy 1",
    ):
        assert wanted in results, (wanted, results)


def test_complete_period_has_an_end(clear: Shell) -> None:
    period = {**document()["period"], "is_running": False}
    give(clear, report(period=period))
    line = clear.run("report").text.splitlines()[0]
    assert line.startswith("2025-11-23 17:00 to 2025-11-24 17:00 UTC (24 hours, 2 with records); run ")


def test_report_of_an_older_job(clear: Shell) -> None:
    period = {name: value for name, value in document()["period"].items() if name != "is_running"}
    newer = ("acked_octets", "sampled_in", "sampled_out", "difference")
    totals = {name: value for name, value in document()["totals"].items() if name not in newer}
    give(clear, report(period=period, totals=totals))
    assert clear.run("report", "--json").object["period"]["is_running"] is False
    text = clear.run("report").text
    assert "published" in text
    assert "acknowledged" not in text
    assert "samples cover" not in text


def test_report_without_records(clear: Shell) -> None:
    give(clear, report(period={"first": "", "last": "", "hours": 24, "known": 0}, queues=[], edges=[]))
    assert "no records yet" in clear.run("report").text.splitlines()[0]


def test_report_is_escaped_on_a_terminal(clear: Shell) -> None:
    (first, *_) = document()["failures"]
    give(clear, report(failures=[{**first, "queue": "\x1b[31mred\u202e", "pattern": "a\nb"}]))
    text = clear.run("report").text
    assert "\\x1b[31mred\\u202e" in text
    assert "a\\x0ab" in text


def test_report_of_unknown_version_is_refused(clear: Shell) -> None:
    write(clear, "1 " + json.dumps({**document(), "version": 2}))
    for how in ((), ("--json",)):
        output = clear.run("report", *how, code=1).err
        assert "report_unknown" in output
        assert "has version 2, and this program reads version 1" in output


def test_invalid_report_is_a_store_fault(clear: Shell) -> None:
    write(clear, "nonsense")
    assert clear.fails("report", code=1).startswith("store_fault: the report in the store cannot be read")
