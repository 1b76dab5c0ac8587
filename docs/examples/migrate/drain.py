"""Move all messages of a TMQ queue to another server: drain.py [--reference] FROM_HOST:PORT TO_HOST:PORT QUEUE"""

import socket
import struct
import sys

CREATE, OPEN, ENQ, DNQ = b"\x00", b"\x02", b"\x04", b"\x05"
NOTHING = -1


def counted(data):
    return struct.pack(">I", len(data)) + data  # its length, and the data


class Server:
    def __init__(self, place, queue):
        host, _, port = place.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.ask(CREATE + counted(queue), 1)  # refused where it exists already
        self.queue = self.ask(OPEN + counted(queue), 64)

    def ask(self, request, size):
        self.socket.sendall(request)
        return self.read(size)

    def read(self, size):
        data = b""
        while len(data) < size:
            data += self.socket.recv(size - len(data)) or sys.exit("the connection was closed")
        return data

    def take(self):
        (size,) = struct.unpack(">i", self.ask(DNQ + self.queue, 4))
        return None if size == NOTHING else self.read(size)


is_reference = "--reference" in sys.argv
STORED = b"\x00" if is_reference else b"\x01"
old, new, name = sys.argv[-3:]
source, target = Server(old, name.encode()), Server(new, name.encode())
moved = 0
while (message := source.take()) is not None:
    if target.ask(ENQ + target.queue + counted(message), 1) != STORED:
        sys.exit(f"refused after {moved} messages, the next one is {message!r}")
    moved += 1
print("moved", moved)
