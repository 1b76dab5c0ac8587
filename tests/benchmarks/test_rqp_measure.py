"""Test that the measure of RQP/MCA counts correctly, on real edges and stores with tiny counts."""

from __future__ import annotations

import pytest

from benchmarks.measures import rqp
from benchmarks.measures.bench import Bench
from benchmarks.peers.peer import BODY
from benchmarks.peers.rqp import CONFIRM, encode_data
from protos.rqp_mca import MessageType, Profile, encode_data_confirm
from protos.rqp_mca import encode_data as encode_data_of_ours
from tests.benchmarks.conftest import TINY


def test_everything_is_measured(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rqp, "ROUND_TRIP_S", 0.05)
    found = rqp.measure(bench)
    assert [(finding.what, finding.note) for finding in found if not finding.values] == []
    assert {len(finding.values) for finding in found} == {TINY.rounds}
    assert all(value > 0 for finding in found for value in finding.values)
    assert [str(finding.target) for finding in found if finding.target] == [">= 1", ">= 0.5", ">= 5000"]


def test_its_octets_are_the_protocols() -> None:
    """Check that the benchmark's encoding equals that of the protocol (rqp_mca.md 1.2)."""
    assert encode_data(0xFEDC_BA98) == encode_data_of_ours(
        Profile.PACKED, 0xFEDC_BA98, MessageType.RELIABLE, BODY
    )
    assert bytes([CONFIRM]) == encode_data_confirm(Profile.PACKED)
