"""Call a command of tests/docs/forking.py; runs without site packages, to start fast."""

import marshal
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    request = marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ)))
    socket.send_fds(server, [len(request).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(request)
    status = server.recv(1)
os._exit(status[0] if status else 70)
