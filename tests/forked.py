"""A process that another one forked; that one reports its process id and its exit status."""

from __future__ import annotations

import os
import signal
import socket
import subprocess

NUMBER = 4  # octets of a number in a report


class Forked:
    """A child of another process, with the required part of the interface of subprocess.Popen."""

    def __init__(self, reports: socket.socket) -> None:
        self._reports = reports
        self._status: int | None = None
        self.pid = self._number()

    def poll(self) -> int | None:
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status. Raises subprocess.TimeoutExpired."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("penstock_operator", timeout or 0.0)
        return status

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _ended(self, patience_s: float | None) -> int | None:
        if self._status is None:
            self._reports.settimeout(patience_s)
            try:
                self._status = self._number()
                self._reports.close()
            except (BlockingIOError, TimeoutError):
                return None
        return self._status

    def _number(self) -> int:
        octets = self._reports.recv(NUMBER, socket.MSG_WAITALL)
        assert len(octets) == NUMBER, "its server has ended"
        return int.from_bytes(octets, "big", signed=True)
