"""Make a base image on machines that reach package registries but no image registry.

The output of debootstrap is cached. Settings of this machine (trusted certificate authorities, pip configuration) go
into this image and therefore never into the Dockerfile.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tools.cache import Kept, keep
from tools.command import run
from tools.images.storage import OWN_MOUNTS, buildah

SUITE = "bookworm"  # Debian 12: Python 3.11
PACKAGES = ("ca-certificates", "python3", "python3-venv")
NAME = "localhost/penstock-base"
MONTH = f"{datetime.now(UTC):%Y-%m}"  # the image is rebuilt each month, with Debian's updates
DEBIAN = Kept("image-base", f"{SUITE}-4-{MONTH}", "base.tar")

AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
OWN_AUTHORITIES = Path(
    "/usr/local/share/ca-certificates"
)  # those that this machine adds; Java takes them one by one
PIP = Path("/etc/pip.conf")
UNWANTED = ("var/cache/apt", "var/lib/apt/lists", "var/log", "dev", "run")  # of the output of debootstrap
TIMEOUT_S = 1200.0  # it takes 30 s

OUR_PIP = f"[global]\ncert = {AUTHORITIES}\n"
SOURCES = "etc/apt/sources.list"
MEND = (
    "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get upgrade -qq -y >/dev/null && apt-get clean"
)


def base() -> str:
    """Return the name of the image; build it if it is missing. Raises NotBuilt."""
    name = f"{NAME}:{DEBIAN.version}-{machine()}"
    if not _is_there(name):
        keep([DEBIAN], _debootstrap)
        _make(name)
    return name


def machine() -> str:
    """Return a short hash of the machine's certificate authorities and pip configuration."""
    return hashlib.sha256(_authorities() + _pip()).hexdigest()[:8]


def _authorities() -> bytes:
    return AUTHORITIES.read_bytes() if AUTHORITIES.exists() else b""


def _pip() -> bytes:
    return PIP.read_bytes() if PIP.exists() else OUR_PIP.encode()


def _is_there(name: str) -> bool:
    return bool(buildah("images", "--quiet", "--filter", f"reference={name}").strip())


def _debootstrap(place: Path, missing: Sequence[Kept]) -> None:
    print(f"making {DEBIAN} of Debian's packages; it takes a minute", file=sys.stderr)
    root, archive = place / "root", place / DEBIAN.folder / DEBIAN.entry
    included = ["--variant=minbase", f"--include={','.join(PACKAGES)}"]
    _run("debootstrap", *OWN_MOUNTS, "debootstrap", *included, SUITE, str(root))
    _name_all_sources(root / SOURCES)
    archive.parent.mkdir()
    unwanted = [f"--exclude=./{path}/*" for path in UNWANTED]
    _run("tar", "tar", "--create", "--file", str(archive), "--directory", str(root), *unwanted, ".")
    shutil.rmtree(root)


def _name_all_sources(sources: Path) -> None:
    """Add the updates and security suites: debootstrap configures the release alone."""
    deb, mirror, suite, *parts = sources.read_text().split()
    mirror = mirror.rstrip("/")
    lines = [(mirror, suite), (mirror, f"{suite}-updates"), (f"{mirror}-security", f"{suite}-security")]
    sources.write_text("".join(" ".join((deb, *line, *parts)) + "\n" for line in lines))


def _make(name: str) -> None:
    with _container() as container, tempfile.TemporaryDirectory() as own:
        buildah("add", container, str(DEBIAN.program), "/")
        buildah("run", "--isolation", "chroot", "--network", "host", container, "sh", "-c", MEND)
        unwanted = [f"/{path}/*" for path in UNWANTED if path.startswith("var/")]
        buildah("run", "--isolation", "chroot", container, "sh", "-c", f"rm -rf {' '.join(unwanted)}")
        if OWN_AUTHORITIES.is_dir():
            buildah("copy", container, str(OWN_AUTHORITIES), str(OWN_AUTHORITIES))
            buildah("run", "--isolation", "chroot", container, "update-ca-certificates")
        # last, as an upgrade of the authorities' package overwrites that file
        for path, content in ((AUTHORITIES, _authorities()), (PIP, _pip())):
            (Path(own) / path.name).write_bytes(content)
            buildah("copy", container, str(Path(own) / path.name), str(path))
        buildah("config", "--cmd", "python3", container)
        buildah("commit", "--format", "oci", container, name)


@contextmanager
def _container() -> Iterator[str]:
    """Yield the name of an empty working container."""
    container = buildah("from", "scratch").strip()
    try:
        yield container
    finally:
        buildah("rm", container)


def _run(name: str, *command: str) -> str:
    return run(name, command, TIMEOUT_S)
