"""Test that folders of workers' metrics are removed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from services.kit.workers.scratch import PREFIX, YOUNG_S, scratch_folder


def age(folder: Path) -> None:
    stamp = folder.stat().st_mtime - 2 * YOUNG_S
    os.utime(folder, (stamp, stamp))


def test_folder_is_removed_with_its_owner(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_folder_of_a_killed_owner_is_removed_at_the_next_start(tmp_path: Path) -> None:
    pid = os.fork()
    if not pid:
        with scratch_folder(tmp_path):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    (left,) = tmp_path.glob(f"{PREFIX}*")
    with scratch_folder(tmp_path):
        assert left.exists()  # it is new: its owner might be about to lock it
    age(left)
    with scratch_folder(tmp_path):
        assert not left.exists()


def test_folder_in_use_is_kept(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        age(folder)
        with scratch_folder(tmp_path) as other:
            assert folder.exists()
            assert other != folder
