"""Build the documentation site once for all processes of a run."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from tests.docs.site import built


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if hasattr(request.config, "workerinput") else own) / "site"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            built(tmp_path_factory.mktemp("site")).rename(folder)
    return folder
