"""One request to the client port of a ring's node: ask.py PORT create|push|pull|destroy QUEUE [MESSAGE]"""

import socket
import struct
import sys

OPERATIONS = ["create", "push", "pull", "destroy", "ERROR", "OK"]
FRAME = struct.Struct(">I255s255sI")  # operation, sender_name, queue_id, message_size; the message follows

port, operation, queue, *message = sys.argv[1:]
body = message[0].encode() if message else b""
with socket.create_connection(("127.0.0.1", int(port))).makefile("rwb") as stream:
    stream.write(FRAME.pack(OPERATIONS.index(operation), b"me", queue.encode(), len(body)) + body)
    stream.flush()
    answer, _, _, size = FRAME.unpack(stream.read(FRAME.size))
    print(OPERATIONS[answer], stream.read(size).decode())
