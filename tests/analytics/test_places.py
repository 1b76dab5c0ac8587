"""Test outputs that can never be used: refused before the run begins, with advice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from services.analytics.places import NoOutput, as_url, check
from services.analytics.settings import Settings, SettingsError
from tests.analytics.objects import BUCKET, objects


@pytest.mark.parametrize("output", ["s3a://", "s3://", "s3a:///", "s3a://?region=x", "s3a:///folder"])
def test_a_bucket_is_to_be_named(output: str) -> None:
    with pytest.raises(NoOutput, match="name a bucket, as in s3a:"):
        check(output)


@pytest.mark.parametrize("scheme", ["gs", "gcs", "abfs", "hdfs", "mock", "ftp", "S3A"])
def test_what_was_never_tried_is_no_output(scheme: str) -> None:
    """Check that untested schemes are refused, though Arrow supports most of them."""
    with pytest.raises(NoOutput, match=f"unknown scheme {scheme}; give a folder, or s3a:"):
        check(f"{scheme}://me:hidden@bucket/folder")


@pytest.mark.parametrize("output", ["ftp://host/folder", "file://", "x://"])
def test_what_nobody_knows_is_no_output(output: str) -> None:
    with pytest.raises(NoOutput, match=r"^output "):
        check(output)


def test_a_folder_that_is_there_or_can_be_made_is_one(tmp_path: Path) -> None:
    for output in (tmp_path, tmp_path / "a/b", f"{tmp_path}/", tmp_path.as_uri() + "/"):
        check(str(output))
    assert list(tmp_path.iterdir()) == []
    assert as_url("file:///") == "file:///"


def test_a_file_is_none_nor_is_what_is_below_it(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    for output in ("out", "out/deep/er"):
        with pytest.raises(NoOutput, match=f"^output file://.*{output}: .*a file"):
            check(str(tmp_path / output))


def looked_at_by_somebody_else(output: str) -> str:
    """Return the error for a user other than root, who may write everywhere."""
    look = (
        "import os, sys\nfrom services.analytics.places import NoOutput, check\n"
        "os.getuid() or os.setuid(65534)\n"
        "try:\n    check(sys.argv[1])\nexcept NoOutput as error:\n    print(error)"
    )
    return subprocess.run(
        [sys.executable, "-c", look, output], capture_output=True, text=True, check=True
    ).stdout


def test_a_folder_of_others_is_none() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        told = looked_at_by_somebody_else(f"{folder}/out")
        assert told == f"output file://{folder}/out: this user may not write into {folder}\n"


def test_nor_is_one_that_may_not_be_searched() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o666)
        told = looked_at_by_somebody_else(f"{folder}/out/deep")
        Path(folder).chmod(0o777)
        assert told.startswith(f"output file://{folder}/out/deep: this user may not read a folder above it")
        assert told.count("\n") == 1


def test_a_bucket_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with objects(tmp_path) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        check(f"s3a://{BUCKET}/deep/folder")
        (tmp_path / "data" / BUCKET / "taken").write_text("")
        with pytest.raises(NoOutput, match="it is a file"):
            check(f"s3a://{BUCKET}/taken")
        with pytest.raises(NoOutput, match="output s3a://elsewhere/x: the bucket does not exist"):
            check("s3a://elsewhere/x")


def test_the_working_directory_is_no_output_that_is_not_named() -> None:
    with pytest.raises(SettingsError, match="output is empty"):
        Settings("redis://127.0.0.1", "", "r1")


@pytest.mark.parametrize(
    "url", ["s3a://KEY:hun/ter2@b/f", "s3://KEY:hunter2#@b/f", "s3a://KEY:hunter2@b/f?x=1#"]
)
def test_an_output_with_an_unescaped_secret_is_refused_without_it(url: str) -> None:
    with pytest.raises(NoOutput) as refused:
        check(url)
    assert "ter2" not in str(refused.value)
    assert "KEY" not in str(refused.value)
