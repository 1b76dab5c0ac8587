"""Test the installation of Delta Lake's and s3a's jars, with a stand-in for Java that serves files."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest

from services.analytics.spark import jars

LINE = re.compile(r"[\w.]+:[\w.-]+:\d[\w.]* [0-9a-f]{64}")
CONTENT = b"a jar"
RIGHT = hashlib.sha256(CONTENT).hexdigest()
# writes each requested jar into the folder, as `ivy -retrieve` does
JAVA = r"""#!/bin/sh
[ "$1" = -version ] && { echo 'openjdk version "17.0.1"' >&2; exit 0; }
[ -n "$OFFLINE" ] && { echo "SERVER ERROR: no route"; exit 1; }
while [ "$1" != -ivy ]; do shift; done
folder=$(dirname "$2")
grep -o '<dependency org="[^"]*" name="[^"]*" rev="[^"]*"' "$2" |
  sed 's/.*org="\(.*\)" name="\(.*\)" rev="\(.*\)"/\1_\2-\3.jar/' |
  while read -r name; do printf 'a jar' > "$folder/$name"; done
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark without further jars, whose lock names two."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    folder = tmp_path / "spark" / "jars"
    folder.mkdir(parents=True)
    (folder / "ivy-2.5.3.jar").touch()
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA)
    java.chmod(0o755)
    lock(tmp_path, monkeypatch, RIGHT, RIGHT)
    return folder


def lock(place: Path, monkeypatch: pytest.MonkeyPatch, *hashes: str) -> None:
    lines = [f"org.a:b{number}:1.0 {sha256}\n" for number, sha256 in enumerate(hashes)]
    (place / "jars.lock").write_text("".join(lines))
    monkeypatch.setattr(jars, "LOCK", place / "jars.lock")


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_lock_pins_each_jar_by_version_and_hash() -> None:
    lines = jars.LOCK.read_text().splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    assert lines == sorted(lines)
    assert len({jar.file for jar in jars.locked()}) == len(lines)


def test_every_jar_of_the_lock_is_installed_in_this_environment() -> None:
    assert jars.missing() == []
    assert all(jar.is_in(jars.jar_folder()) for jar in jars.locked())


def test_missing_jars_are_installed_once(folder: Path) -> None:
    wanted = ["org.a_b0-1.0.jar", "org.a_b1-1.0.jar"]
    assert jars.missing() == wanted
    assert jars.install() == wanted
    assert jars.missing() == jars.install() == []
    assert names(folder) == ["ivy-2.5.3.jar", *wanted]


def test_changed_jar_is_fetched_again(folder: Path) -> None:
    jars.install()
    (folder / "org.a_b1-1.0.jar").write_bytes(b"half")
    assert jars.install() == ["org.a_b1-1.0.jar"]


def test_other_version_of_a_jar_is_removed_but_no_jar_of_spark(folder: Path) -> None:
    for name in ("org.a_b0-0.9.jar", "b0-0.9.jar", "org.other_b0-0.9.jar"):
        (folder / name).touch()
    jars.install()
    assert not (folder / "org.a_b0-0.9.jar").exists()
    assert (folder / "b0-0.9.jar").exists()
    assert (folder / "org.other_b0-0.9.jar").exists()


def test_wrong_hash_installs_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock(tmp_path, monkeypatch, RIGHT, "0" * 64)
    with pytest.raises(jars.JarsError, match=r"org\.a_b1-1\.0\.jar: its SHA-256 is not that of jars\.lock"):
        jars.install()
    assert names(folder) == ["ivy-2.5.3.jar"]


def test_unreachable_repository_is_told_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OFFLINE", "1")
    assert jars.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("penstock: jar org.a_b0-1.0.jar: not fetched")
    assert line.endswith("SERVER ERROR: no route")
    assert names(folder) == ["ivy-2.5.3.jar"]


@pytest.mark.parametrize("java", ["", "#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n"])
def test_missing_or_old_java_is_told_in_one_line(
    folder: Path, tmp_path: Path, java: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "java" / "bin" / "java"
    program.unlink()
    if java:
        program.write_text(java)
        program.chmod(0o755)
    assert jars.main() == 1
    assert capsys.readouterr().err == f"penstock: {jars.NO_JAVA}\n"
