"""What `make e2e` runs on somebody's own cluster (CONTRIBUTING.md, End to end). These need none."""

from __future__ import annotations

import pytest

from tests.e2e.images import given


@pytest.mark.parametrize("place", ["registry.test/team", "registry.test/team/"])
def test_images_are_those_of_the_registry(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("PENSTOCK_E2E_IMAGES", place)
    monkeypatch.setenv("PENSTOCK_E2E_TAG", "7")
    assert given().of("edge") == "registry.test/team/penstock-edge:7"
