"""Test that the code's labels of counters are those of the spec (ring.md 2.3, 2.5, 2.7, 3.3, 5.5, 5.6)."""

import re
from pathlib import Path

import pytest

import protos.ring
from protos.ring import REFUSALS, DropReason

PACKAGE = Path(protos.ring.__file__).parent
SPEC = (PACKAGE.parent / "ring.md").read_text()
INPUT = "../connection_input"  # the reasons that all protocols share
RAISED = re.compile(r'(?:PeerError|Unusable)\("(\w+)"')


def section(number: str, following: str) -> str:
    return SPEC.partition(f"\n{number} ")[2].partition(f"\n{following} ")[0]


def raised_by(module: str) -> set[str]:
    return set(RAISED.findall((PACKAGE / f"{module}.py").read_text()))


def first_cells(text: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)`", text, flags=re.M))


def test_link_labels_match_the_spec() -> None:
    closing = set(re.findall(r"`(\w{2,})`", section("2.5", "2.6") + section("2.7", "3.1")))
    assert first_cells(section("2.3", "2.4")) | closing == raised_by("link") | raised_by(
        "window"
    ) | raised_by(INPUT)


def test_beacon_labels_match_the_spec() -> None:
    assert first_cells(section("3.3", "3.4")) == raised_by("beacons")


def test_drop_labels_match_the_spec() -> None:
    assert first_cells(section("5.5", "5.6")) == {why.value for why in DropReason}


def test_client_port_labels_match_the_spec() -> None:
    assert first_cells(section("5.6", "5.7")) == raised_by(INPUT) | raised_by("requests") | set(REFUSALS)


@pytest.mark.parametrize(("reason", "answer"), REFUSALS.items())
def test_refusal_texts_match_the_spec(reason: str, answer: str) -> None:
    [row] = [line for line in SPEC.splitlines() if line.startswith(f"| `{reason}` ")]
    assert f"| `{answer}` |" in row
