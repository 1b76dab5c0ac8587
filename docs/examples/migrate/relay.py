"""Repeat messages of tags at another text server: relay.py FROM_HOST:PORT TO_HOST:PORT TAG [TAG ...]"""

import socket
import sys


def connect(place):
    host, _, port = place.rpartition(":")
    return socket.create_connection((host, int(port))).makefile("rw", encoding="ascii", newline="\n")


old, new, *tags = sys.argv[1:]
source, target = connect(old), connect(new)
for number, tag in enumerate(tags):  # a MESSAGE names the number of a subscription, not the tag
    print("SUBSCRIBE", number, tag, file=source, flush=True)
for line in source:
    kind, _, rest = line.rstrip("\r\n").partition(" ")
    if kind == "ERROR":
        sys.exit(line)
    if kind != "MESSAGE":
        continue
    number, _, message = rest.partition(" ")
    print("SEND", tags[int(number)], message, file=target, flush=True)
    if not target.readline().startswith("OK"):
        sys.exit(f"refused: {message}")
    print("repeated", tags[int(number)], message, flush=True)
