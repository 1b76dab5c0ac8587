"""Asks the console for its overview; `helm test` runs this in a pod.

CONSOLE_URL=http://host:port is where it is, CONSOLE_TOKEN a token that it knows. With https:// nobody looks whose
certificate it is. While nobody answers, or the store is not there yet, it is asked again until START_S seconds have
passed. Ends with 1 if anything was wrong, and says what.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

PATH = "/api/v1/overview"
PATIENCE_S = 20.0
AGAIN_S = 0.5
NOT_YET = 503


class Failed(Exception):
    """What it answered instead."""


def overview(url: str, token: str) -> Any:
    """Raises Failed, and OSError while nobody answers or it says to come again."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = Request(url + PATH, headers={"Authorization": f"Bearer {token}"})
    try:
        with urlopen(request, timeout=PATIENCE_S, context=context) as answer:
            return json.load(answer)
    except HTTPError as refusal:
        with refusal:
            said = refusal.read().decode(errors="replace")
        if refusal.code == NOT_YET:
            raise ConnectionError(said) from None
        raise Failed(f"{PATH} was answered {refusal.code}: {said}") from None
    except (HTTPException, ValueError) as error:
        raise Failed(f"{PATH} was answered with something else: {error!r}") from None


def asked(url: str, token: str, until: float) -> Any:
    """until: on the monotonic clock. Raises Failed, OSError."""
    waits = False
    while True:
        try:
            return overview(url, token)
        except OSError as error:
            if time.monotonic() > until:
                raise
            if not waits:
                print(f"console at {url}: not there yet: {error}", flush=True)
            waits = True
        time.sleep(AGAIN_S)


def main() -> int:
    url, until = os.environ["CONSOLE_URL"], time.monotonic() + float(os.environ.get("START_S", "0"))
    try:
        totals = asked(url, os.environ["CONSOLE_TOKEN"], until)["totals"]
        print(f"console at {url}: tells of {totals['queues']} queues and {totals['edges']} edges")
    except (Failed, OSError) as error:
        print(f"console at {url}: {error}")
        return 1
    except (KeyError, TypeError) as error:
        print(f"console at {url}: this is no overview: {error!r} is not in it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
