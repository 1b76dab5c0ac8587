"""Test the image of analytics: the job runs to its end, or until SIGTERM (docs/images.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.e2e.images import Images
from tests.images.container import NAMELESS, Container, once
from tests.redis_stream.entries import Entries
from tests.servers import Server, eventually

OWN = ("--tmpfs=/tmp:rw,exec,nosuid,size=512m",)  # Spark loads libraries from there
TERMINATED = 143
RUNNING_S = 270.0  # less than the container may take


@pytest.fixture
def letters(store: Server) -> Iterator[Entries]:
    """Return dead letters that died a minute ago."""
    store.clear()
    found = Entries(store)
    died = found.now_ms() - 60_000
    for number in range(20):
        found.letter("orders", died, error=f"error {number}")
    yield found
    store.clear()


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """Return a folder that the image's user may write to."""
    folder = tmp_path / "output"
    folder.mkdir()
    os.chown(folder, 10001, 10001)
    return folder


def job(images: Images, folder: Path, output: Path, store: str, more: Sequence[str] = ()) -> Container:
    words = ("run", "--store", store, "--output", "/output", "--run-id", "r1", "--master", "local[2]")
    flags = (*OWN, f"--volume={output}:/output:rw", *more)
    return Container(images.of("analytics"), folder, *words, flags=flags)


def rows(output: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a Delta table, read without Spark."""
    found: list[dict[str, Any]] = DeltaTable(str(output / table)).to_pyarrow_table().to_pylist()
    return found


def test_job_completes(images: Images, tmp_path: Path, output: Path, letters: Entries) -> None:
    with job(images, tmp_path, output, letters.server.url) as container:
        assert container.wait(RUNNING_S) == 0, container.log()
    report = json.loads((output / "reports" / "latest.json").read_text())
    assert report["totals"]["dead"] == len(letters.letters) == len(rows(output, "bronze/dead"))
    assert sum(row["count"] for row in rows(output, "gold/deaths")) == len(letters.letters)
    assert '"level": "ERROR"' not in container.log()


def test_sigterm_ends_the_job_and_any_user_finishes_the_run(
    images: Images, tmp_path: Path, output: Path, letters: Entries
) -> None:
    with job(images, tmp_path, output, letters.server.url) as container:
        eventually(lambda: list(output.glob("_checkpoints/abc/dead/offsets/*")), RUNNING_S)
        assert container.terminate() in (TERMINATED, 0), container.log()
    for path in (output, *output.rglob("*")):
        os.chown(path, 123456, 123456)
    with job(images, tmp_path, output, letters.server.url, NAMELESS) as container:
        assert container.wait(RUNNING_S) == 0, container.log()
    assert [row["run"] for row in rows(output, "runs")] == ["r1"]
    assert len(rows(output, "bronze/dead")) == len(letters.letters)


def test_s3_is_supported(images: Images, tmp_path: Path, letters: Entries) -> None:
    """Check that S3 is supported: the error is a failed connection, and not an unknown file system."""
    words = ("run", "--store", letters.server.url, "--run-id", "r1", "--output", "s3a://bucket/folder")
    nowhere = {
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    }
    with Container(
        images.of("analytics"), tmp_path, *words, "--master", "local[1]", environment=nowhere, flags=OWN
    ) as container:
        assert container.wait(RUNNING_S) == 1, container.log()
    assert "output s3a://bucket/folder: When " in container.log()


def test_jars_of_delta_and_s3_are_in_the_image(images: Images) -> None:
    code = "from services.analytics.spark import jars; print(jars.missing())"
    assert once(images.of("analytics"), ("python", "-c", code)).strip() == "[]"
