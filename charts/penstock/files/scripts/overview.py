"""Requests the overview from the console; `helm test` runs this in a pod.

CONSOLE_URL=http://host:port is the address, CONSOLE_TOKEN a valid token. https:// does not verify the certificate.
While the console or the store is unreachable, the script retries for START_S seconds. It exits with 1 on failure.
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
TIMEOUT_S = 20.0
RETRY_S = 0.5
UNAVAILABLE = 503


class Failed(Exception):
    """The console answered something else than an overview."""


def overview(url: str, token: str) -> Any:
    """Return the overview. Raises Failed, and OSError if the console or its store is unreachable."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = Request(url + PATH, headers={"Authorization": f"Bearer {token}"})
    try:
        with urlopen(request, timeout=TIMEOUT_S, context=context) as response:
            return json.load(response)
    except HTTPError as refusal:
        with refusal:
            reason = refusal.read().decode(errors="replace")
        if refusal.code == UNAVAILABLE:
            raise ConnectionError(reason) from None
        raise Failed(f"{PATH} returned {refusal.code}: {reason}") from None
    except (HTTPException, ValueError) as error:
        raise Failed(f"{PATH} returned an invalid response: {error!r}") from None


def wait_for_overview(url: str, token: str, until: float) -> Any:
    """Return the overview, with retries. until: deadline, on the monotonic clock. Raises Failed, OSError."""
    is_reported = False
    while True:
        try:
            return overview(url, token)
        except OSError as error:
            if time.monotonic() > until:
                raise
            if not is_reported:
                print(f"console at {url}: not ready: {error}", flush=True)
            is_reported = True
        time.sleep(RETRY_S)


def main() -> int:
    url, until = os.environ["CONSOLE_URL"], time.monotonic() + float(os.environ.get("START_S", "0"))
    try:
        totals = wait_for_overview(url, os.environ["CONSOLE_TOKEN"], until)["totals"]
        print(f"console at {url}: {totals['queues']} queues, {totals['edges']} edges")
    except (Failed, OSError) as error:
        print(f"console at {url}: {error}")
        return 1
    except (KeyError, TypeError) as error:
        print(f"console at {url}: the response is not an overview: {error!r} is missing")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
