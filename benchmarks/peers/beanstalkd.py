"""Peer beanstalkd with its binlog: lazy fsync by default, and `-f0`."""

from __future__ import annotations

import socket
import subprocess

from benchmarks.generator import Load
from benchmarks.peers.peer import BODY, Shape, WirePeer, dial, read_until
from benchmarks.process import NotRun, Workshop, find_program, free_port

TIME_TO_RUN_S = 120  # a reserved job is released after this time


class Beanstalkd(WirePeer):
    def __init__(self, workshop: Workshop, *, always: bool) -> None:
        super().__init__(workshop)
        self.always = always
        self.name = "beanstalkd-f0" if always else "beanstalkd"
        self.title = "beanstalkd, -f0" if always else "beanstalkd, binlog as shipped"
        self.promise = (
            "written to the binlog and fsynced"
            if always
            else "written to the binlog; fsynced at most every 50 ms, not awaited"
        )
        self.program = ""

    def start(self) -> None:
        self.program = find_program("beanstalkd") or ""
        if not self.program:
            raise NotRun("beanstalkd is not installed (Debian: beanstalkd)")
        self.port = free_port()
        binlog = self.workshop.subfolder(self.name)
        command = [self.program, "-l", "127.0.0.1", "-p", str(self.port), "-b", str(binlog)]
        self.daemon = self.workshop.start(
            self.name, command + ["-f0"] * self.always, lambda: self.connect().close()
        )

    def version(self) -> str:
        shown = subprocess.run([self.program, "-v"], capture_output=True, timeout=10)
        return shown.stdout.decode().strip().replace("beanstalkd ", "")

    def connect(self) -> socket.socket:
        return dial(self.port)

    def create(self, queue: str) -> None:
        pass  # a tube is created on first use

    def delete(self, queue: str) -> None:
        pass  # a tube is deleted with its last job

    def put_load(self, shape: Shape, queue: str) -> Load:
        request = b"put 0 0 %d %d\r\n%s\r\n" % (TIME_TO_RUN_S, len(BODY), BODY)
        load = self.load(shape, "line", request, ok="INSERTED")
        for sock in load.sockets:
            converse(sock, f"use {queue}", f"USING {queue}")
        return load

    def take_load(self, shape: Shape, queue: str) -> Load:
        load = self.load(shape, "beanstalkd-take", b"reserve\r\n")
        for sock in load.sockets:
            converse(sock, f"watch {queue}", "WATCHING 2")
            converse(sock, "ignore default", "WATCHING 1")
        return load


def converse(sock: socket.socket, line: str, expected: str) -> None:
    sock.sendall(line.encode() + b"\r\n")
    reply = read_until(sock, lambda data: data.endswith(b"\r\n"))
    if reply != expected.encode() + b"\r\n":
        raise OSError(f"beanstalkd answered {reply!r} to {line!r}")
