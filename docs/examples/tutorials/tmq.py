"""One program of TMQ's: tmq.py PORT create|put|take|drop|count|move QUEUE [MESSAGE | OTHER QUEUE]"""

import socket
import struct
import sys

CREATE, OPEN, ENQ, DNQ, COMMIT, START, COUNT = b"\x00", b"\x02", b"\x04", b"\x05", b"\x06", b"\x08", b"\x09"
NOTHING = -1


def read(size):
    data = b""
    while len(data) < size:
        data += server.recv(size - len(data)) or sys.exit("the connection was closed")
    return data


def counted(data):
    return struct.pack(">I", len(data)) + data  # its length, and what it is


def opened(name):
    server.sendall(OPEN + counted(name.encode()))
    return read(64)  # the queue's id


def put(queue, message):
    server.sendall(ENQ + queue + counted(message))
    return "stored" if read(1) == b"\x01" else "refused"


def take(queue):
    server.sendall(DNQ + queue)
    (size,) = struct.unpack(">i", read(4))
    return None if size == NOTHING else read(size)


port, operation, name, *more = sys.argv[1:]
server = socket.create_connection(("127.0.0.1", int(port)))
if operation == "create":
    server.sendall(CREATE + counted(name.encode()))
    print("created" if read(1) == b"\x00" else "refused")
elif operation == "put":
    print(put(opened(name), more[0].encode()))
elif operation == "take":
    message = take(opened(name))
    print("nothing there" if message is None else message.decode())
elif operation == "drop":  # takes one, and is gone as a program is that was killed
    print("had", take(opened(name)).decode())
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
elif operation == "count":
    server.sendall(COUNT + opened(name))
    print(*struct.unpack(">q", read(8)))
elif operation == "move":  # both or nothing
    here, there = opened(name), opened(more[0])
    server.sendall(START)
    read(1)
    put(there, take(here))
    server.sendall(COMMIT)
    print("moved" if read(1) == b"\x00" else "nothing happened")
server.close()
