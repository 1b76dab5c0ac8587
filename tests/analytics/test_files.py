"""Test the output folder on Arrow's file systems: atomic writes, exclusive creation, errors."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import S3FileSystem

from services.analytics.files import Files
from services.analytics.lock import Lock
from services.analytics.places import OutputError, as_url, opened
from services.analytics.publish import Ready, publish, ready_file, staging
from services.analytics.state import State

ANYWHERE = "region=eu-north-1&endpoint_override=127.0.0.1:1"  # never contacted


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(str(tmp_path / "out"))


def test_what_is_written_is_read(files: Files) -> None:
    files.write_octets("a/b/c", b"\x00\xff")
    files.write_json("a/told.json", {"n": 1})
    assert files.read_octets("a/b/c") == b"\x00\xff"
    assert files.read_json("a/told.json") == {"n": 1}
    assert [(each.name, each.is_folder) for each in files.list("a")] == [("b", True), ("told.json", False)]


def test_a_folder_that_is_not_there_has_nothing_in_it(files: Files) -> None:
    assert files.list("") == []
    assert list(files.walk("x/y")) == []
    assert not files.exists("x")


def test_walking_leaves_out_what_is_nobodys_data(files: Files) -> None:
    for path in (
        "h/one.parquet",
        "h/deep/two.parquet",
        "h/_SUCCESS",
        "h/.three.crc",
        "h/notes.txt",
        "h/_x.parquet",
    ):
        files.write_octets(path, path.encode())
    assert list(files.walk("h")) == ["h/deep/two.parquet", "h/one.parquet"]
    assert list(files.sizes("h").items()) == [("h/deep/two.parquet", 18), ("h/one.parquet", 13)]


def test_json_that_is_written_again_leaves_one_file(files: Files, tmp_path: Path) -> None:
    for number in range(3):
        files.write_json("told.json", number)
    assert os.listdir(tmp_path / "out") == ["told.json"]
    assert files.read_json("told.json") == 2


def test_what_is_no_json_is_named(files: Files) -> None:
    files.write_octets("told.json", b"{")
    with pytest.raises(OutputError, match=r"out/told\.json is not JSON"):
        files.read_json("told.json")


def test_of_many_who_create_at_once_one_is_told_so(files: Files, tmp_path: Path) -> None:
    for round_ in range(20):
        with ThreadPoolExecutor(8) as many:
            path = f"locks/{round_}.json"
            owners: list[dict[str, Any]] = [{"owner": f"o{number}"} for number in range(8)]
            created = [*many.map(lambda owner, path=path: files.create_json(path, owner), owners)]
        assert created.count(True) == 1
        assert files.read_json(path) == owners[created.index(True)]
    assert len(os.listdir(tmp_path / "out" / "locks")) == 20  # no temporary files are left


def test_where_there_are_no_links_the_second_is_still_told(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError("Operation not permitted")  # as on vfat and some shares

    monkeypatch.setattr(os, "link", refused)
    assert files.create_json("lock.json", {"owner": "a"})
    assert not files.create_json("lock.json", {"owner": "b"})
    assert [each.name for each in files.list("")] == ["lock.json"]


def test_a_move_is_in_place_of_what_is_there_and_done_once(files: Files) -> None:
    files.write_octets("from", b"new")
    files.write_octets("far/to", b"old")
    files.move("from", "far/to")
    files.move("from", "far/to")
    assert files.read_octets("far/to") == b"new"
    assert not files.exists("from")


def test_what_somebody_removed_before_it_was_moved_is_named(files: Files) -> None:
    with pytest.raises(OutputError, match="from cannot be moved: it was removed"):
        files.move("from", "to")


def test_what_is_gone_may_be_deleted(files: Files) -> None:
    files.write_octets("a/b/c", b"")
    for _ in range(2):
        files.delete("a/b/c")
        files.delete("a")
    assert not files.exists("a")


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError, match=r"output x/y: .*Not a directory"):
        Files(str(tmp_path / "out")).write_octets("x/y", b"")


def test_names_with_signs_of_urls_are_names(tmp_path: Path) -> None:
    files = Files(str(tmp_path / "50% #1?x"))
    files.write_octets("a", b"1")
    assert (tmp_path / "50% #1?x" / "a").read_bytes() == b"1"


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_buckets_are_named_as_hadoop_does_and_as_others_do(scheme: str) -> None:
    found, root = opened(f"{scheme}://letters/deep/down/?{ANYWHERE}")
    assert isinstance(found, S3FileSystem)
    assert found.region == "eu-north-1"
    assert root == "letters/deep/down"


def test_keys_in_the_url_are_told_to_nobody() -> None:
    files = Files(f"s3a://me:hidden@letters/deep?{ANYWHERE}")
    assert files.uri("state.json") == "s3a://letters/deep/state.json"
    with pytest.raises(OutputError) as told:
        Files("s3a://me:hidden@letters/deep?secret_key=hidden")
    assert "hidden" not in str(told.value)


@pytest.mark.parametrize("output", ["gopher://x/y", "s3://?region=x", "file://host/x"])
def test_an_output_that_nobody_knows_is_told(output: str) -> None:
    with pytest.raises(OutputError, match="output "):
        Files(output)


def test_a_relative_folder_is_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert as_url("out/") == (tmp_path / "out").as_uri()


def test_all_is_on_the_disk_before_the_list_and_the_state_say_so(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the order of syncs: staged files before the list, published files before the state."""
    moves = [(f"{staging('r1')}/a/{name}", f"archive/{name[0]}/{name}") for name in ("x1", "y1")]
    for source, _ in moves:
        files.write_octets(source, b"rows")
    settled: list[str] = []
    monkeypatch.setattr(os, "fsync", _recording(settled, tmp_path / "out", os.fsync))
    with Lock(files, 60) as lock:
        publish(files, Ready("r1", moves, [], State(last_run="r1"), {}), lock)
    ready = settled.index(f"{ready_file('r1')}.writing")
    state = settled.index("state.json.writing")
    assert {"runs/r1/staging/a/x1", "runs/r1/staging/a/y1", "runs/r1/staging/a"} <= {*settled[:ready]}
    assert {"archive/x", "archive/y", "archive", "."} <= {*settled[ready:state]}


def _recording(settled: list[str], root: Path, settle: Callable[[int], None]) -> Callable[[int], None]:
    def fsync(opened: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{opened}"))
        settled.append(str(path.relative_to(root)))
        settle(opened)

    return fsync
