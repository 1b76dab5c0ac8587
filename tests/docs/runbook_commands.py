"""Take the read-only commands of runbooks from the pages, with names filled in as the index says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from tests.docs.blocks import blocks
from tests.tmq.process import ROOT

PAGES = sorted((ROOT / "docs" / "runbooks").glob("*.md"))
FIRST = "First steps"  # the section of the index whose block applies to every alert
SPAN = re.compile(r"`((?:kubectl|penstock|helm) [^`]+)`")
NAMES = ("NAMESPACE", "RELEASE", "<name>", "EDGE", "POD", "QUEUE")
DIAGNOSIS = (
    *("kubectl get", "kubectl describe", "kubectl logs", "kubectl exec"),
    *("penstock queue list", "penstock queue show", "penstock dead list", "penstock log show"),
    *("penstock ring status", "penstock report", "helm list", "helm history"),
)
OTHERS = {  # other commands, with the reason why they are not run
    "helm rollback": "a change",
    "helm upgrade": "a change",
    "kubectl delete": "a change",
    "kubectl port-forward": "it does not end",
    "kubectl scale": "a change",
    "penstock dead purge": "a change; tests/docs/test_runbook_changes.py",
    "penstock dead redrive": "a change; tests/docs/test_runbook_changes.py",
    "penstock queue delete": "a change",
    "penstock doctor": "an administrator's: tests/e2e/test_release.py",
    "penstock store": "an administrator's",
}
MAY_FAIL = {  # commands that fail on a healthy system, with their message
    "--previous": "previous terminated container",
    "penstock report": "no report yet",
}


def commands() -> Iterator[str]:
    """Yield the commands of all runbooks once each, the block of the index first."""
    (first,) = [block for block in blocks("docs/runbooks/index.md") if block.section == FIRST]
    spans = [" ".join(span.split()) for page in PAGES for span in SPAN.findall(page.read_text())]
    yield from dict.fromkeys([*first.text.splitlines(), *spans])


def diagnosis_commands() -> list[str]:
    return [command for command in commands() if command.startswith(DIAGNOSIS)]


def filled(command: str, names: Mapping[str, str]) -> list[str]:
    """Return a command's words with these values of NAMES; `penstock` runs in a pod.

    See docs/chart.md, "Commands in a cluster". Redirections and pipes are left out.
    """
    command, *_ = re.split(r" [>|] ", command)
    if command.startswith("penstock "):
        command = f"kubectl exec -n NAMESPACE deploy/<name>-EDGE -- {command}"
    for name in NAMES:
        command = re.sub(rf"(?<![\w-]){name}(?!\w)|(?<=-){name}(?!\w)", names[name], command)
    return shlex.split(command, comments=True)


def is_well(command: str, said: str) -> bool:
    """Return whether a failed command with this message only found nothing."""
    return any(part in command and words in said for part, words in MAY_FAIL.items())
