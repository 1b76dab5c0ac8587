"""Run the read-only commands of docs/runbooks on a release."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.docs.runbook_commands import diagnosis_commands, filled, is_well
from tests.e2e.release import FULL, NAME, Release
from tests.kubernetes.cluster import CommandFailed

EDGE = "tmq"
AT_ONCE = 4


def seen(release: Release, queue: str) -> dict[str, str]:
    """Return outputs by command, with names filled in. Raise CommandFailed if one fails on a healthy release."""
    names = {
        "NAMESPACE": release.namespace,
        "RELEASE": NAME,
        "<name>": FULL,
        "EDGE": EDGE,
        "POD": release.pods(EDGE)[0]["metadata"]["name"],
        "QUEUE": queue,
    }
    each = [filled(command, names) for command in diagnosis_commands()]
    asked = {" ".join(words): words for words in each}  # each command once
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outputs = pool.map(lambda command: _output(release, command, asked[command]), asked)
        return dict(zip(asked, outputs, strict=True))


def _output(release: Release, command: str, words: list[str]) -> str:
    program, *rest = words
    try:
        return {"kubectl": release.cluster.kubectl, "helm": release.cluster.helm}[program](*rest)
    except CommandFailed as error:
        if not is_well(command, error.said):
            raise
        return error.said
