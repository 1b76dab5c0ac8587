"""Install the jars that the job needs beside PySpark's own: Delta Lake, and Hadoop's file system s3a.

`jars.lock` pins each one by version and SHA-256. Apache Ivy, which is among PySpark's own jars, fetches missing ones.
Nothing is fetched when a job starts.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pyspark

LOCK = Path(__file__).with_name("jars.lock")
TIMEOUT_S = 540.0  # it takes 10 s
JAVA_VERSION = 17
NO_JAVA = (
    f"Java {JAVA_VERSION} or newer is missing; `penstock analytics` needs it: "
    "sudo apt-get install openjdk-17-jre-headless"
)
# Without poms: the lock names every jar. Without the repository's own checksums: the lock has better ones.
SETTINGS = """<ivysettings><settings defaultResolver="central"/><resolvers>
<ibiblio name="central" m2compatible="true" usepoms="false" checksums=""/>
</resolvers></ivysettings>"""
MODULE = """<ivy-module version="2.0"><info organisation="penstock" module="jars"/>
<configurations><conf name="default"/></configurations><dependencies>{}</dependencies></ivy-module>"""
DEPENDENCY = '<dependency org={} name={} rev={} transitive="false"/>'


class JarsError(Exception):
    """The jars cannot be installed; the text says why and what to do."""


@dataclass(frozen=True)
class Jar:
    """A line of the lock."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """Return the name of the file; PySpark's own jars are named without a group."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"

    def is_in(self, folder: Path) -> bool:
        """Return whether the folder has the jar with the hash of the lock."""
        path = folder / self.file
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256


def locked() -> list[Jar]:
    """Return the jars of the lock."""
    lines = LOCK.read_text("utf-8").splitlines()
    return [Jar(*re.split("[: ]", line)) for line in lines if not line.startswith("#")]


def jar_folder() -> Path:
    """Return the folder of the jars of the Spark that will start."""
    home = os.environ.get("SPARK_HOME")
    return Path(home or Path(pyspark.__file__).parent) / "jars"


def missing() -> list[str]:
    """Return the file names of missing jars. Hashes are compared by `install` only, which renames complete files."""
    folder = jar_folder()
    return [jar.file for jar in locked() if not (folder / jar.file).is_file()]


def install() -> list[str]:
    """Install missing and wrong jars, all or none, and remove other versions. Return their file names.

    Raises JarsError.
    """
    folder, jars = jar_folder(), locked()
    wanted = [jar for jar in jars if not jar.is_in(folder)]
    if wanted:
        java = _java()
        try:
            with tempfile.TemporaryDirectory(prefix=".jars-", dir=folder) as temporary:
                _fetch(java, wanted, Path(temporary))
                for jar in wanted:
                    (Path(temporary) / jar.file).replace(folder / jar.file)
        except OSError as error:
            raise JarsError(f"jars of {LOCK.name}: {error}") from None
    _remove_others(folder, jars)
    return [jar.file for jar in wanted]


def _remove_others(folder: Path, jars: Sequence[Jar]) -> None:
    """Remove jars of these groups that an older lock named."""
    named = {jar.file for jar in jars}
    for group in {jar.group for jar in jars}:
        for path in folder.glob(f"{group}_*.jar"):
            if path.name not in named:
                path.unlink(missing_ok=True)


def _java() -> str:
    """Return the Java program that Spark would use. Raises JarsError if it is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else "java"
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True).stderr
    except OSError:
        raise JarsError(NO_JAVA) from None
    found = re.search(r'version "(\d+)', said)
    if not found or int(found[1]) < JAVA_VERSION:
        raise JarsError(NO_JAVA)
    return program


def _fetch(java: str, jars: Sequence[Jar], folder: Path) -> None:
    """Fetch the jars into the folder and check their hashes. Raises JarsError."""
    (ivy,) = jar_folder().glob("ivy-*.jar")
    settings, module = folder / "settings.xml", folder / "ivy.xml"
    settings.write_text(SETTINGS)
    named = ([quoteattr(each) for each in (jar.group, jar.artifact, jar.version)] for jar in jars)
    module.write_text(MODULE.format("".join(DEPENDENCY.format(*each) for each in named)))
    pattern = f"{folder}/[organisation]_[artifact]-[revision].[ext]"
    command = [java, "-cp", str(ivy), "org.apache.ivy.Main", "-settings", str(settings), "-ivy", str(module)]
    command += ["-retrieve", pattern, "-cache", str(folder / "cache")]
    try:
        said = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S, errors="replace"
        ).stdout
    except subprocess.TimeoutExpired:
        raise JarsError(f"jars of {LOCK.name}: not fetched within {TIMEOUT_S:.0f} s; try again") from None
    for jar in jars:
        _check(jar, folder, said)


def _check(jar: Jar, folder: Path, said: str) -> None:
    if jar.is_in(folder):
        return
    if (folder / jar.file).exists():
        raise JarsError(
            f"jar {jar.file}: its SHA-256 is not that of {LOCK.name}; nothing was installed. A proxy or a mirror "
            "of the central Maven repository may have changed it"
        )
    reason = " ".join(
        line.strip() for line in said.splitlines() if re.search("ERROR|not found|Exception", line)
    )
    raise JarsError(
        f"jar {jar.file}: not fetched from the central Maven repository; nothing was installed. Check the network, "
        f"or copy the jar to {jar_folder()}: {reason[:300] or said[-300:].strip()}"
    )


def main() -> int:
    """Install the jars, quiet if all are there, and return the exit code."""
    try:
        installed = install()
    except JarsError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    if installed:
        print(f"penstock: {len(installed)} jars are installed in {jar_folder()}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
