"""A client of the text service: text.py PORT LINE...; says the lines, and prints what comes until the server closes."""

import socket
import sys

port, *lines = sys.argv[1:]
with socket.create_connection(("127.0.0.1", int(port))) as server:
    server.sendall("".join(f"{line}\n" for line in lines).encode())
    for line in server.makefile():
        print(line, end="", flush=True)
