"""Move all messages of a TMQ queue to another server. Each server may speak either dialect."""

import argparse
import socket
import struct
import sys

CREATE, OPEN, ENQ, DNQ = b"\x00", b"\x02", b"\x04", b"\x05"
NOTHING = -1


def counted(data):
    return struct.pack(">I", len(data)) + data  # its length, and the data


class Server:
    def __init__(self, place):
        host, _, port = place.rpartition(":")
        self.place = place
        self.socket = socket.create_connection((host, int(port)))
        # the dialects differ in their answer for a queue that does not exist
        is_reference = self.ask(OPEN + counted(b"no such queue"), 64).startswith(b"<NIL>")
        self.stored = b"\x00" if is_reference else b"\x01"
        self.start, self.commit = (b"\x06", b"\x07") if is_reference else (b"\x08", b"\x06")

    def open(self, name):
        self.queue = self.ask(OPEN + counted(name), 64)
        return not self.queue.lower().startswith(b"<nil>")

    def take(self):
        """Begin a transaction with the next message: without a commit, it returns when we disconnect."""
        self.ask(self.start, 1)
        (size,) = struct.unpack(">i", self.ask(DNQ + self.queue, 4))
        return None if size == NOTHING else self.read(size)

    def ask(self, request, size):
        self.socket.sendall(request)
        return self.read(size)

    def read(self, size):
        data = b""
        while len(data) < size:
            data += self.socket.recv(size - len(data)) or sys.exit(f"{self.place} closed the connection")
        return data


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("source", metavar="FROM_HOST:PORT")
parser.add_argument("target", metavar="TO_HOST:PORT")
parser.add_argument("queue", metavar="QUEUE", help="is created at the target if it does not exist")
given = parser.parse_args()
source, target, name = Server(given.source), Server(given.target), given.queue.encode()
if not source.open(name):
    sys.exit(f"{source.place} has no queue {given.queue}")
target.ask(CREATE + counted(name), 1)  # refused if it exists
if not target.open(name):
    sys.exit(f"{target.place} refuses the queue {given.queue}")
moved = 0
while (message := source.take()) is not None:
    if target.ask(ENQ + target.queue + counted(message), 1) != target.stored:
        sys.exit(f"moved {moved}; {target.place} refuses the next message, which stays at {source.place}")
    source.ask(source.commit, 1)
    moved += 1
print("moved", moved)
