"""The console of a release, asked from a pod by its Service."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.e2e.release import FULL, Release
from tests.e2e.scripted import PLACES, run_script

URL = f"http://{FULL}-console"


def token(release: Release) -> str:
    """That of the administrator, which the chart has made."""
    secret = json.loads(release.kubectl("get", "secret", f"{FULL}-console", "-o", "json"))
    return base64.b64decode(secret["data"]["admin-token"]).decode()


def through_the_console(release: Release, queue: str) -> dict[str, Any]:
    """What it tells while a message goes in by its API and out by TMQ: see scripts/console.py."""
    words = (URL, token(release), queue, PLACES["tmq"])
    told: dict[str, Any] = json.loads(run_script(release, "console.py", *words))
    return told
