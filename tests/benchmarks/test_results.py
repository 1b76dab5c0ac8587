"""Test the saved results of a run, and how they are shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import chart, report
from benchmarks.generator import Outcome
from benchmarks.machine import Machine
from benchmarks.measures.throughput import compare
from benchmarks.results import Cell, Finding, PeerResult, Results, Target, load, newest_full, ratios, save

MACHINE = Machine("a processor", 2, 24.0, "a system", "6.1", "3.11", "ext4", 130.0, 0.1)


def cell(*rates: float, busy: float = 0.25) -> Cell:
    return Cell(list(rates), [1.0], [2.0], [busy])


def make_results(**changes: object) -> Results:
    peers = [
        PeerResult("tmq", "Penstock TMQ", "fsynced", "0.1", "", {"put 10 x 200": cell(600e3, 300e3, 500e3)}),
        PeerResult(
            "nats", "JetStream", "not fsynced", "2.15", "", {"put 10 x 200": cell(200e3, 100e3, 100e3)}
        ),
        PeerResult("rabbitmq", "RabbitMQ", "fsynced", "", "it is not installed"),
        PeerResult("ceiling", "(ceiling)", "nothing", "", "", {"put 10 x 200": cell(650e3)}),
    ]
    results = Results("2026-11-21T10:00:00", MACHINE, "C", 3, False, "abc1234", peers)
    results.findings = [
        *compare(results),
        Finding("idle", "idle connections", [12.0], "KiB each", Target("<=", 16)),
    ]
    for name, value in changes.items():
        setattr(results, name, value)
    return results


def test_ratios_are_taken_round_by_round() -> None:
    results = make_results()
    finding = next(each for each in results.findings if each.what == "put 10 x 200 / JetStream")
    assert finding.values == [3.0, 3.0, 5.0]
    assert (finding.value, finding.verdict) == (3.0, "met")
    assert ratios(None, cell(1)) == []


def test_a_peer_that_did_not_run_is_named_with_the_reason() -> None:
    finding = next(each for each in make_results().findings if "RabbitMQ" in each.what)
    assert finding.verdict == "not run"
    assert finding.note == "RabbitMQ: it is not installed"


def test_a_peer_that_was_not_asked_for_is_not_compared() -> None:
    results = make_results()
    results.peers = results.peers[:1]
    assert compare(results) == []


def test_edges_of_penstock_are_not_held_against_each_other() -> None:
    results = make_results()
    text = PeerResult("text", "Penstock text", "fsynced", "", "", {"put 10 x 200": cell(400e3, 400e3, 400e3)})
    results.peers.append(text)
    assert report.format_cell(results, text, "put 10 x 200") == "400"
    finding = next(each for each in compare(results) if each.what.startswith("text "))
    assert finding.what == "text put 10 x 200 / JetStream"
    assert (finding.values, finding.verdict) == ([2.0, 4.0, 4.0], "met")


@pytest.mark.parametrize(("sign", "verdict"), [(">=", "missed"), ("<=", "met")])
def test_verdicts(sign: str, verdict: str) -> None:
    assert Finding("m", "w", [1.0], target=Target(sign, 2.0)).verdict == verdict  # type: ignore[arg-type]
    assert Finding("m", "w", [1.0]).verdict == ""


def test_a_cell_keeps_every_round() -> None:
    kept = Cell()
    kept.add(Outcome(100, 0.5, p50_us=3, p99_us=9, cpu_s=0.1, refused=1))
    kept.add(Outcome(300, 0.5, p50_us=4, p99_us=8, cpu_s=0.2))
    assert kept == Cell([200.0, 600.0], [3, 4], [9, 8], [0.2, 0.4], refused=1)
    assert kept.rate == 400.0


def test_results_survive_the_file(tmp_path: Path) -> None:
    results, path = make_results(), tmp_path / "new" / "2026-11-21.json"
    save(results, path)
    again = load(path)
    assert again.peers == results.peers
    assert [finding.value for finding in again.findings] == [finding.value for finding in results.findings]
    assert report.markdown(again, None) == report.markdown(results, None)


def test_another_file_is_not_taken_for_a_result(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"machine": {"cores": 1}}')
    with pytest.raises(ValueError, match="not a result"):
        load(path)


def test_only_a_full_run_is_named_by_its_date_alone(tmp_path: Path) -> None:
    assert command.result_name(make_results(), []) == "2026-11-21"
    assert command.result_name(make_results(quick=True), []) == "2026-11-21-quick"
    assert command.result_name(make_results(), ["tmq", "idle"]) == "2026-11-21-idle-tmq"
    assert newest_full(tmp_path) is None
    for name in ("2026-11-19", "2026-11-20", "2026-11-21-quick"):
        (tmp_path / f"{name}.json").touch()
    assert newest_full(tmp_path) == tmp_path / "2026-11-20.json"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.6483, "0.648"), (1.5, "1.5"), (38.14, "38.1"), (411.6, "412"), (13234.2, "13,234")],
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert report.format_number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.998, "1.998"), (1.99961, "1.9996"), (2.001, "2"), (5.04, "5.04"), (10.96, "10.96"), (204.7, "205")],
)
def test_quotients_are_not_rounded_up_to_a_whole_number(value: float, shown: str) -> None:
    assert report.format_quotient(value) == shown


def test_the_terminal_shows_all_of_it() -> None:
    console = Console(record=True, width=160, file=open("/dev/null", "w"))  # noqa: SIM115
    report.print_results(make_results(), console)
    text = console.export_text()
    console.file.close()
    for wanted in (
        "500†",
        "100 (3 x)",
        "not run: it is not installed",
        "not fsynced",
        "12 KiB each",
        "<= 16",
        "met",
    ):
        assert wanted in text
    assert "busy at most 25% of one. Commit abc1234. † more than 70%" in " ".join(text.split())


def test_markdown_holds_the_same() -> None:
    text = report.markdown(make_results(), "benchmarks/results/2026-11-21.png")
    assert "| JetStream 2.15 | 100 (3 x) | - | - | - |" in text
    assert "- **RabbitMQ**: not run: it is not installed" in text
    assert "![Messages a second, side by side](benchmarks/results/2026-11-21.png)" in text
    assert "medians of 3 interleaved rounds" in text


def test_caption_marks_a_quick_run() -> None:
    assert "not to be quoted" in report.caption(make_results(quick=True))


def test_caption_names_the_load_of_a_busy_machine() -> None:
    assert "not idle" not in report.caption(make_results())
    assert "not idle when the run began (load 1.8)" in report.caption(
        make_results(machine=replace(MACHINE, load=1.8))
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.998, "1.998 x"), (1.99996, "1.99996 x"), (2.0, "2 x"), (2.004, "2 x"), (3.123, "3.12 x")],
)
def test_a_missed_goal_is_not_rounded_to_it(value: float, shown: str) -> None:
    assert report.finding_row(Finding("m", "w", [value], "x", Target(">=", 2)))[1] == shown


def test_the_page_is_written_between_its_markers(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    save(make_results(), tmp_path / "results" / "2026-11-21.json")
    (tmp_path / "results" / "2026-11-21.png").touch()
    assert command.write_page(page, tmp_path / "results") == "benchmarks.md shows 2026-11-21.json"
    text = page.read_text()
    assert text.startswith(f"before\n{report.BEGIN}\n")
    assert text.endswith(f"\n{report.END}\nafter\n")
    assert "old" not in text
    assert "(results/2026-11-21.png)" in text


def test_a_page_without_markers_and_without_results(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("nothing here\n")
    with pytest.raises(ValueError, match="no full run"):
        command.write_page(page, tmp_path)
    save(make_results(), tmp_path / "2026-11-21.json")
    with pytest.raises(ValueError, match="benchmarks:begin"):
        command.write_page(page, tmp_path)
    assert page.read_text() == "nothing here\n"


def test_the_picture_is_a_png_or_nothing(tmp_path: Path) -> None:
    assert chart.draw(make_results(), tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
    assert not chart.draw(make_results(peers=[]), tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()
