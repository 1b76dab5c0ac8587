"""Test the contents of the images (docs/images.md)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.images import PREFIX, TARGETS, Images
from tests.images.container import inspect, once
from tools.images.build import LABELS, ROOT, Image, build, version

EDGE_MAX_BYTES = 150_000_000  # more than its base
USER = "10001:10001"
HERE = Path(__file__).parent
WITH_USER = f"{PREFIX}penstock-test-base-with-user:1"
WITH_PIP = f"{PREFIX}penstock-test-base-with-pip:1"
BUILD_TOOLS = ("pip", "pip3", "gcc", "cc", "make", "git", "curl", "uv")
SEARCH = """
import importlib.util, json, pathlib, shutil, sys, sysconfig
ours = pathlib.Path(sys.prefix)
packages = pathlib.Path(sysconfig.get_path("purelib"))
print(json.dumps({
    "prefix": sys.prefix,
    "programs": [name for name in json.loads(sys.argv[1]) if shutil.which(name)],
    "modules": [name for name in ("pip", "setuptools", "wheel", "hatchling") if importlib.util.find_spec(name)],
    "tests": [str(path) for path in packages.glob("**/tests")],
    "sources": [str(path) for suffix in (".c", ".h", ".pyx", ".pxd", ".whl") for path in ours.glob("**/*" + suffix)],
    "lists": [str(path) for path in pathlib.Path("/var/lib/apt/lists").glob("*Packages*")],
    "archives": [str(path) for path in pathlib.Path("/var/cache/apt/archives").glob("*.deb")],
    "caches": [str(path) for path in pathlib.Path("/root/.cache").glob("*")],
}))
"""
# Print imported files and files of packages without bytecode, and the flags after the magic number of the others:
# 1 is "by hash, unchecked", 0 by the source's time.
COMPILED = """
import asyncio, json, logging.handlers, pathlib, ssl, sys, sysconfig, urllib.request
from importlib.util import cache_from_source
def flags(path):
    compiled = pathlib.Path(cache_from_source(path))
    return int.from_bytes(compiled.read_bytes()[4:8], "little") if compiled.exists() else None
imported = [each.__file__ for each in sys.modules.values() if (getattr(each, "__file__", None) or "").endswith(".py")]
ours = [str(path) for path in pathlib.Path("/opt/penstock/lib").glob("**/*.py")]
print(json.dumps({
    "missing": [path for path in [*imported, *ours] if flags(path) is None],
    "imported": sorted({flags(path) for path in imported} - {None}),
    "ours": sorted({flags(path) for path in ours} - {None}),
}))
"""


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_image_has_labels_user_and_stop_signal(images: Images, base: str, target: str) -> None:
    config = inspect(images.of(target))["Config"]
    labels = {name.removeprefix(LABELS): value for name, value in config["Labels"].items()}
    assert labels["title"] == f"penstock-{target}"
    assert (labels["version"], labels["licenses"]) == (version(), "Apache-2.0")
    assert labels["base.name"] == base
    assert re.fullmatch("[0-9a-f]{40}(-dirty)?", labels["revision"])
    assert "source" not in labels  # the build was not given their place
    assert (config["User"], config["StopSignal"]) == (USER, "SIGTERM")


def test_nothing_that_builds_is_in_it(images: Images, target: str) -> None:
    command = ["python", "-c", SEARCH, json.dumps(BUILD_TOOLS)]
    # as root, which alone may read its folders
    assert json.loads(once(images.of(target), command, "--user=0")) == {
        "prefix": "/opt/penstock",
        "programs": [],
        "modules": [],
        "tests": [],
        "sources": [],
        "lists": [],
        "archives": [],
        "caches": [],
    }


def test_only_the_edge_has_the_command_line(images: Images, target: str) -> None:
    """Check that only the edge's image has the command line, whose imports the operator lacks."""
    found = once(images.of(target), ["sh", "-c", "command -v penstock; true"])
    assert found == ("/opt/penstock/bin/penstock\n" if target == "edge" else "")


def test_everything_is_compiled_and_the_same_for_the_same_sources(images: Images, target: str) -> None:
    """Check that all files are compiled reproducibly: on a read-only file system each start would compile them."""
    result = json.loads(once(images.of(target), ["python", "-c", COMPILED], "--user=0"))
    assert (result["missing"], result["ours"]) == ([], [1])


ANY_PYTHON = """
for python in $(ls /usr/bin/python3* /usr/local/bin/python3* 2>/dev/null); do
  for module in pip setuptools pkg_resources wheel ensurepip; do
    $python -c "import $module" 2>/dev/null && echo "$python $module"
  done
done
command -v pip pip3 wheel
true
"""


def test_a_base_with_pip_loses_it_and_one_without_bytecode_gets_it(images: Images, base: str) -> None:
    """Check that a base's pip is removed and missing bytecode is added, as for the Dockerfile's own base."""
    build(Image(WITH_PIP, HERE / "base-with-pip", arguments={"BASE": base}), "buildah")
    before = once(WITH_PIP, ["sh", "-c", ANY_PYTHON]).split()
    assert {"pip", "setuptools", "pkg_resources", "ensurepip", "/usr/local/bin/pip"} <= set(before)
    runtime = f"{PREFIX}penstock-test-runtime:1"
    build(Image(runtime, ROOT, target="runtime", arguments={"BASE": WITH_PIP}), "buildah")
    assert once(runtime, ["sh", "-c", ANY_PYTHON]) == ""
    assert once(runtime, ["python3", "-c", "import json, pipes, ssl, venv; print('well')"]) == "well\n"
    result = json.loads(once(runtime, ["python3", "-c", COMPILED]))
    assert (result["missing"], result["imported"]) == ([], [1])


def test_a_base_that_names_a_user_can_be_built_on(base: str) -> None:
    build(Image(WITH_USER, HERE / "base-with-user", arguments={"BASE": base}), "buildah")
    for stage in ("pip", "runtime"):  # all other stages are built on these
        name = f"{PREFIX}penstock-test-{stage}-on-a-user:1"
        build(Image(name, ROOT, target=stage, arguments={"BASE": WITH_USER}), "buildah")
    assert inspect(name)["Config"]["User"] == USER


def test_its_user_has_no_rights_and_writes_only_to_tmp(images: Images, target: str) -> None:
    said = once(
        images.of(target), ["sh", "-c", "id -u; id -g; grep -E 'Cap(Eff|Bnd)|NoNewPrivs' /proc/self/status"]
    )
    assert said.split() == [
        *("10001", "10001"),
        *("CapEff:", "0000000000000000"),
        *("CapBnd:", "0000000000000000"),
        *("NoNewPrivs:", "1"),
    ]
    writing = "for f in / /opt/penstock /etc /home /run /var/tmp /tmp; do touch $f/x 2>/dev/null && echo $f; done; true"
    assert once(images.of(target), ["sh", "-c", writing]) == "/tmp\n"


def test_program_files_are_not_writable(images: Images, target: str) -> None:
    """Check that processes cannot change their own program where the root file system is writable.

    Files that the group may write are not allowed either.
    """
    open_ones = [
        "find",
        "/opt/penstock",
        "!",
        "-type",
        "l",
        "(",
        "-user",
        "10001",
        "-o",
        "-group",
        "10001",
        "-o",
        "-perm",
        "-o=w",
        ")",
    ]
    assert once(images.of(target), open_ones) == ""


def test_the_edge_is_small(images: Images, base: str) -> None:
    over = inspect(images.of("edge"))["Size"] - inspect(base)["Size"]
    print(f"the edge's image has {over / 1e6:.0f} MB over its base")
    assert 0 < over <= EDGE_MAX_BYTES


def test_modules_in_tmp_are_not_imported(images: Images, target: str) -> None:
    """Check that modules in /tmp, the writable folder, home and possible working directory, are not imported."""
    script = "cd /tmp && echo 'raise SystemExit(9)' > redis.py && python -c 'import redis' && python -m this >/dev/null"
    once(images.of(target), ["sh", "-c", script])
