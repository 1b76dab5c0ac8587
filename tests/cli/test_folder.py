"""The data folder: one tenant at a time, and a memory of the data that it had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.cli.exits import Exit, Failure
from services.cli.folder import Folder, Tenant


def test_a_locked_folder_tells_its_tenant(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "data")
    assert folder.tenant() is None
    folder.lock()
    folder.tell(Tenant(os.getpid(), 7, "unix:///a/very/long/path"))
    folder.tell(Tenant(os.getpid(), 7, "unix:///short"))
    assert Folder(tmp_path / "data").tenant() == Tenant(os.getpid(), 7, "unix:///short")
    with pytest.raises(Failure, match=f"pid {os.getpid()} already runs"):
        Folder(tmp_path / "data").lock()
    os.close(folder.lock_fd)
    assert folder.tenant() is None


def test_a_child_that_inherits_the_lock_keeps_the_folder_occupied(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.lock()
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(folder.lock_fd,)
    )
    os.close(folder.lock_fd)
    assert folder.tenant() is not None
    child.communicate(b"\n")
    assert folder.tenant() is None


def test_a_folder_may_be_unusable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Failure) as caught:
        Folder(tmp_path / "file").lock()
    assert caught.value.exit is Exit.USAGE


def test_data_is_remembered_until_its_loss_is_accepted(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.dataset == ""
    folder.remember("abc")
    assert Folder(tmp_path).dataset == "abc"
    folder.remember("def")
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]
    folder.forget()
    folder.forget()
    assert folder.dataset == ""
