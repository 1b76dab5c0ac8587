"""Pass on what comes into a queue: python pass_on.py PORT FROM TO, PORT being that of the TMQ edge.

It moves one message at a time, each in a transaction: if a process dies meanwhile, one of the two queues has it.
"""

import socket
import struct
import sys
import time

OPEN, ENQ, DNQ, TE, TA, TS = b"\x02", b"\x04", b"\x05", b"\x06", b"\x07", b"\x08"
LENGTH = struct.Struct(">i")
NOTHING = -1
PAUSE_S = 0.1  # before it looks again


def main(port: int, source: str, goal: str) -> None:
    connection = socket.create_connection(("127.0.0.1", port))
    answers = connection.makefile("rb")

    def ask(request: bytes, size: int) -> bytes:
        connection.sendall(request)
        return read(size)

    def read(size: int) -> bytes:
        if len(data := answers.read(size)) < size:
            sys.exit("the server closed the connection")
        return data

    def open_queue(name: bytes) -> bytes:
        return ask(OPEN + LENGTH.pack(len(name)) + name, 64)

    from_id, to_id = open_queue(source.encode()), open_queue(goal.encode())
    while True:
        ask(TS, 1)
        (size,) = LENGTH.unpack(ask(DNQ + from_id, LENGTH.size))
        if size == NOTHING:
            ask(TA, 1)
            time.sleep(PAUSE_S)
            continue
        body = read(size)
        is_stored = ask(ENQ + to_id + LENGTH.pack(size) + body, 1) == b"\x01"
        ask(TE if is_stored else TA, 1)
        if not is_stored:
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
