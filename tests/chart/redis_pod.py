"""The pod of the chart's own store without a cluster: a real server runs its scripts and settings in a folder."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from services.store.redis.embedded import server_binary
from services.system.pdeathsig import die_with_parent
from tests.chart.chart import NAME, render
from tests.servers import free_port

ADMIN, EDGE = "administrators-0", "edges_1.~"


class Pod:
    """The container's files from the ConfigMap, environment from the Secret, and programs of the image."""

    def __init__(self, folder: Path, program: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.files = folder / "etc"
        self.users = folder / "users.acl"
        for part in (self.files, folder / "bin", folder / "data"):
            part.mkdir()
        for name, text in render()[f"ConfigMap/{NAME}-redis"]["data"].items():
            (self.files / name).write_text(text)
        if program == "valkey":
            (folder / "bin" / "valkey-server").symlink_to(server_binary())
        self.environment = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "FILES": str(self.files),
            "USERS": str(self.users),
            "DATA": str(folder / "data"),
            "ADMIN_PASSWORD": ADMIN,
            "EDGE_PASSWORD": EDGE,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        place = ("--port", str(self.port), "--bind", "127.0.0.1")
        parent = os.getpid()
        with (self.folder / "output").open("wb") as given:
            self.process = subprocess.Popen(
                ["sh", str(self.files / "start.sh"), *place],
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=given,
                preexec_fn=lambda: die_with_parent(parent),
            )

    def is_ready(self) -> bool:
        command = ["sh", str(self.files / "ping.sh"), "-p", str(self.port)]
        return subprocess.run(command, env=self.environment, capture_output=True).returncode == 0

    def client(self, user: str, password: str) -> Redis:
        again = Retry(NoBackoff(), 0)
        return Redis(port=self.port, username=user, password=password, decode_responses=True, retry=again)

    def url(self, user: str, password: str) -> str:
        return f"redis://{user}:{password}@127.0.0.1:{self.port}/0"

    def end(self, signum: signal.Signals = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.send_signal(signum)
        self.process.wait(30)
