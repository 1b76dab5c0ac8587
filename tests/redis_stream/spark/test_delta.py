"""Run the example of docs/analytics.md that streams dead letters into a Delta table, killed and started again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from tests.docs.blocks import blocks
from tests.redis_stream.entries import Entries
from tests.redis_stream.spark.jvm import SHORT_LIVED
from tests.redis_stream.spark.session import PLACES
from tests.servers import Server

PAGE, SECTION, USUAL = "docs/analytics.md", "Into Delta Lake", "redis://127.0.0.1:6379"
PATIENCE_S = 280.0


def begin(store: Entries, folder: Path) -> subprocess.Popen[bytes]:
    (block,) = [each for each in blocks(PAGE) if each.section == SECTION and each.language == "python"]
    text = block.text.replace(USUAL, store.server.url)
    assert text != block.text
    own = {"PYTHONPATH": os.pathsep.join(map(str, PLACES)), "PYSPARK_PYTHON": sys.executable}
    environment = {**os.environ, **SHORT_LIVED, **own, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", text], cwd=folder, env=environment, stdout=log, stderr=log, process_group=0
        )


def ids(folder: Path) -> list[str]:
    """Return the ids in the table by a reader other than Spark; none without a table."""
    try:
        table = DeltaTable(folder / "dead-letters").to_pyarrow_table(columns=["id"])
    except TableNotFoundError:
        return []
    return sorted(table["id"].to_pylist())


@pytest.mark.timeout(3 * PATIENCE_S)
def test_each_dead_letter_is_in_the_table_once_after_a_kill(running: Server, tmp_path: Path) -> None:
    running.clear()
    store = Entries(running)
    letters = [store.letter("orders", store.now_ms() - 1000) for _ in range(20)]
    process = begin(store, tmp_path)
    # the batch has begun: its end is noted, its rows may be written or not
    offsets = tmp_path / "dead-letters-checkpoint/offsets/0"
    while not offsets.exists() and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, 9)
    process.wait()
    letters += [store.letter("orders", store.now_ms() - 1000) for _ in range(5)]
    for _ in range(2):
        process = begin(store, tmp_path)
        assert process.wait(PATIENCE_S) == 0, (tmp_path / "log").read_text()[-3000:]
        assert ids(tmp_path) == sorted(letters)
