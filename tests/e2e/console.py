"""Access to the console of a release, from a pod through its Service."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.e2e.release import FULL, Release
from tests.e2e.scripted import PLACES, run_script

URL = f"http://{FULL}-console"


def token(release: Release) -> str:
    """Return the administrator's token, which the chart generated."""
    secret = json.loads(release.kubectl("get", "secret", f"{FULL}-console", "-o", "json"))
    return base64.b64decode(secret["data"]["admin-token"]).decode()


def through_the_console(release: Release, queue: str) -> dict[str, Any]:
    """Send a message through the console's API and TMQ; return what scripts/console.py reports."""
    words = (URL, token(release), queue, PLACES["tmq"])
    report: dict[str, Any] = json.loads(run_script(release, "console.py", *words))
    return report
