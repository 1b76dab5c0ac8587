"""Test the output: unusable ones are refused before Spark starts, and small files are replaced atomically."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from services.analytics import output as files
from services.analytics.output import NoOutput, OutputError, check, shown, spark_path
from services.analytics.settings import Settings, SettingsError
from tests.analytics.objects import BUCKET, objects


@pytest.mark.parametrize("output", ["s3a://", "s3://", "s3a:///", "s3a://?region=x", "s3a:///folder"])
def test_bucket_must_be_named(output: str) -> None:
    with pytest.raises(NoOutput, match="name a bucket, as in s3a:"):
        check(output)


@pytest.mark.parametrize("scheme", ["gs", "gcs", "abfs", "hdfs", "mock", "ftp", "S3A"])
def test_untested_scheme_is_refused(scheme: str) -> None:
    """Check that schemes are refused that Arrow or Spark may support, without their logins."""
    with pytest.raises(NoOutput, match=f"unknown scheme {scheme}; give a folder, or s3a:") as refused:
        check(f"{scheme}://me:hidden@bucket/folder")
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("output", ["ftp://host/folder", "file://", "x://", "file://host/x", "gopher://x/y"])
def test_unknown_url_is_refused(output: str) -> None:
    with pytest.raises(NoOutput, match=r"^output "):
        check(output)


@pytest.mark.parametrize("query", ["region=x", "endpoint_override=127.0.0.1:1&scheme=http", ""])
def test_settings_in_the_url_are_refused_with_what_replaces_them(query: str) -> None:
    """Check that settings are refused which only Arrow would know, and not Spark."""
    for scheme in ("s3", "s3a"):
        with pytest.raises(NoOutput, match=r"without `@`, `\?` and `#`.*environment.*AWS_REGION"):
            check(f"{scheme}://bucket/folder?{query}")


@pytest.mark.parametrize(
    "url",
    ["s3a://KEY:hun/ter2@b/f", "s3://KEY:hunter2#@b/f", "s3a://KEY:hunter2@b/f?x=1#", "s3a://KEY:hunter2@b"],
)
def test_keys_in_the_url_are_refused_without_showing_them(url: str) -> None:
    with pytest.raises(NoOutput) as refused:
        check(url)
    assert "ter2" not in str(refused.value)
    assert "KEY:" not in str(refused.value)


@pytest.mark.parametrize("name", ["a[1]", "a|b", "a^b", "a\\b", "a%20b"])
def test_folder_that_tables_cannot_be_in_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NoOutput, match="tables cannot be in a folder with"):
        check(str(tmp_path / name))


def test_folder_that_exists_or_can_be_made_is_accepted(tmp_path: Path) -> None:
    for output in (tmp_path, tmp_path / "a/b", f"{tmp_path}/", tmp_path.as_uri() + "/"):
        check(str(output))
    assert list(tmp_path.iterdir()) == []
    assert shown("file:///") == "file:///"


def test_file_and_a_path_below_it_are_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    for output in ("out", "out/deep/er"):
        with pytest.raises(NoOutput, match=f"^output file://.*{output}: .*a file"):
            check(str(tmp_path / output))


def checked_by_another_user(output: str) -> str:
    """Return the error for a user other than root, who may write everywhere."""
    program = (
        "import os, sys\nfrom services.analytics.output import NoOutput, check\n"
        "os.getuid() or os.setuid(65534)\n"
        "try:\n    check(sys.argv[1])\nexcept NoOutput as error:\n    print(error)"
    )
    return subprocess.run(
        [sys.executable, "-c", program, output], capture_output=True, text=True, check=True
    ).stdout


def test_folder_without_write_permission_is_refused() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        text = checked_by_another_user(f"{folder}/out")
        assert text == f"output file://{folder}/out: this user may not write into {folder}\n"


def test_folder_below_an_unreadable_one_is_refused() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o666)
        text = checked_by_another_user(f"{folder}/out/deep")
        Path(folder).chmod(0o777)
        assert text.startswith(f"output file://{folder}/out/deep: this user may not read a folder above it")
        assert text.count("\n") == 1


def test_output_must_be_named() -> None:
    with pytest.raises(SettingsError, match="output is empty"):
        Settings("redis://127.0.0.1", "", "r1")


def test_bucket_must_exist_and_holds_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with objects(tmp_path) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        output = f"s3a://{BUCKET}/deep/a folder"
        check(output)
        (tmp_path / "data" / BUCKET / "taken").write_text("")
        with pytest.raises(NoOutput, match="it is a file"):
            check(f"s3a://{BUCKET}/taken")
        with pytest.raises(NoOutput, match="output s3a://elsewhere/x: the bucket does not exist"):
            check("s3a://elsewhere/x")
        _check_files(output)


def test_local_folder_holds_files(tmp_path: Path) -> None:
    _check_files(str(tmp_path / "50% #1?x"))
    assert [each.name for each in (tmp_path / "50% #1?x" / "reports").iterdir()] == ["b.html"]


def _check_files(output: str) -> None:
    """Write, read, list and delete files."""
    assert (files.read(output, "reports/a.html"), files.times(output, "reports")) == (None, {})
    assert not files.exists(output, "reports")
    for octets in (b"old and longer", b"\x00\xff"):
        files.write(output, "reports/a.html", octets)
        assert files.read(output, "reports/a.html") == octets
    files.write(output, "reports/b.html", b"")
    assert files.exists(output, "reports/b.html")
    times = files.times(output, "reports")
    assert {*times} == {"a.html", "b.html"}
    assert all(abs(datetime.now(UTC) - each) < timedelta(minutes=5) for each in times.values())
    for _ in range(2):
        files.delete(output, "reports/a.html")
    assert {*files.times(output, "reports")} == {"b.html"}


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(str(tmp_path), "a", b"old")
    with pytest.raises(TypeError):
        files.write(str(tmp_path), "a", "no octets")  # type: ignore[arg-type]
    assert files.read(str(tmp_path), "a") == b"old"


def test_file_in_the_way_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError, match=r"output file://.*/out/x/y: .*Not a directory") as found:
        files.write(str(tmp_path / "out"), "x/y", b"")
    assert "\n" not in str(found.value)


def test_spark_gets_decoded_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert spark_path("out/", "gold", "traffic") == f"file://{os.getcwd()}/out/gold/traffic"
    assert spark_path("/") == "file://"
    assert spark_path("/a b/50%/", "runs") == "file:///a b/50%/runs"
    assert spark_path("file:///a%20b/") == "file:///a b"
    assert spark_path("s3://letters/deep/", "gold") == "s3a://letters/deep/gold"
    assert spark_path("s3a://letters", "gold") == "s3a://letters/gold"
    with pytest.raises(NoOutput):
        spark_path("s3a://letters/deep?region=x")
