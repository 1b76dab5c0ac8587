"""Send one SEND in a pod: send.py HOST:PORT TAG BODY. Exit with 1 unless it is answered by OK."""

from __future__ import annotations

import socket
import sys

from protos import pubsub

PATIENCE_S = 20.0


def main(place: str, tag: str, body: str) -> int:
    host, _, port = place.partition(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as client, client.makefile("rb") as lines:
        client.sendall(pubsub.encode_send(tag.encode(), body.encode()))
        return int(lines.readline().strip() != b"OK")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
