"""An object store with the S3 protocol, whose objects are in a folder."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from services.system.pdeathsig import die_with_parent
from tests.servers import eventually, free_port
from tools.kubernetes.programs import find

KEY, SECRET = "penstock", "not-a-secret-in-a-test"
BUCKET = "letters"


@contextmanager
def objects(folder: Path) -> Iterator[Mapping[str, str]]:
    """Start a store with the empty bucket BUCKET, and return the environment for its clients."""
    port = free_port()
    (folder / "data" / BUCKET).mkdir(parents=True)
    command = [find("versitygw"), "--port", f"127.0.0.1:{port}", "--quiet", "posix", str(folder / "data")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env={**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
            stdout=log,
            stderr=log,
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
    try:
        eventually(lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None)
        yield {
            **{"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"},
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        }
    finally:
        process.terminate()
        process.wait(30)
