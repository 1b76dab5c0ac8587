"""Test the data folder: one process at a time, and a record of its data."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from services.cli.local.folder import Folder, Tenant
from services.cli.terminal.exits import Exit, Failure


def test_locked_folder_names_its_holder(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "data")
    assert folder.tenant() is None
    folder.lock()
    folder.publish(Tenant(os.getpid(), 7, "unix:///a/very/long/path"))
    folder.publish(Tenant(os.getpid(), 7, "unix:///short"))
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


def test_unusable_folder(tmp_path: Path) -> None:
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_store_of_another_user_is_refused() -> None:
    """Check that a store of another user is refused, who may have created it in a parent folder such as /tmp."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        planted = Folder(Path(name))
        planted.lock()
        planted.publish(Tenant(os.getpid(), 7, "redis://203.0.113.1/"))
        (planted.path / "up.lock").chmod(0o644)
        os.chown(planted.path / "up.lock", 65_533, -1)
        os.seteuid(65_534)
        try:
            with pytest.raises(Failure, match=r"up\.lock belongs to uid 65533: set --data-dir"):
                Folder(planted.path).tenant()
            os.seteuid(0)
            assert Folder(planted.path).tenant() is not None  # root may use any
            os.close(planted.lock_fd)
            os.seteuid(65_534)
            assert Folder(planted.path).tenant() is None  # nothing runs there
        finally:
            os.seteuid(0)
