"""One `penstock up` for all tests of the chart that speak to real edges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.shell import Shell, Up, running


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running(Shell(tmp_path_factory.mktemp("up"))) as up:
        yield up
