"""Send a message through the console's API and take it by TMQ: console.py URL TOKEN QUEUE TMQ=HOST:PORT, in a pod.

It prints the console's answers as JSON, and exits with 1 if there was none.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from protos import tmq

PATIENCE_S = 20.0
BODY = "by the console"
DIALECT = tmq.Dialect.DOCUMENT


class Api:
    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, path: str, given: Any = None) -> Any:
        body = None if given is None else json.dumps(given).encode()
        request = Request(f"{self._url}/api/v1{path}", data=body, headers=self._headers)
        with urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def names(self) -> list[str]:
        return [each["name"] for each in self.ask("/queues?limit=1000")["items"]]

    def peers(self) -> list[str]:
        """Return the client addresses of connections to TMQ."""
        return [each["peer"] for each in self.ask("/connections?edge=tmq&limit=1000")["items"]]

    def page(self) -> str:
        with urlopen(f"{self._url}/", timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())

    def status_without_token(self) -> int:
        """Return the status of a request without a token."""
        try:
            urlopen(f"{self._url}/api/v1/overview", timeout=PATIENCE_S).close()
        except HTTPError as refusal:
            with refusal:
                return refusal.code
        return 200


def main(url: str, token: str, queue: str, place: str) -> None:
    api = Api(url, token)
    host, _, port = place.partition("=")[2].partition(":")
    results = {"names": api.names(), "stored": api.ask(f"/queues/{queue}/messages", {"body": BODY})["stored"]}
    with socket.create_connection((host, int(port)), PATIENCE_S) as client, client.makefile("rb") as stream:
        client.sendall(tmq.encode_open(queue.encode()))
        mqid = tmq.parse_mqid(stream.read(tmq.MQID_BYTES))
        assert mqid is not None, "the queue cannot be opened"
        client.sendall(tmq.encode_dnq(mqid))
        length = tmq.parse_length(stream.read(tmq.reply_bytes(DIALECT, tmq.Operation.DNQ)))
        results["taken"] = stream.read(length).decode() if length else ""
        own = client.getsockname()
        results["is_seen"] = f"{own[0]}:{own[1]}" in api.peers()
        client.sendall(tmq.encode_close(mqid))  # settles the message
        stream.read(tmq.reply_bytes(DIALECT, tmq.Operation.CLOSE))
    results.update(edges=api.ask("/overview")["totals"]["edges"], has_page="<html" in api.page())
    print(json.dumps({**results, "stranger": api.status_without_token()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
