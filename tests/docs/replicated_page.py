"""Read the files, by their first lines, and the commands of docs/chart.md, "Sentinel and Cluster"."""

from __future__ import annotations

import re

from tests.tmq.process import ROOT

PAGE = ROOT / "docs" / "chart.md"
BLOCK = re.compile(r"^```\n(.*?)^```", re.M | re.S)
CREATES = "redis-cli --tls"


def section() -> str:
    return PAGE.read_text("utf-8").partition("\n## Sentinel and Cluster\n")[2].partition("\n## ")[0]


def file(title: str) -> str:
    """Return the block that begins with this line."""
    return next(block for block in BLOCK.findall(section()) if block.startswith(f"{title}\n"))


def users() -> str:
    """Return the ACL file without its title: such a file has no comments."""
    return file("# users.acl").partition("\n")[2]


def creating() -> str:
    """Return the command that joins the nodes of a Cluster."""
    return next(block for block in BLOCK.findall(section()) if block.startswith(CREATES)).strip()


def commands(kind: str) -> list[str]:
    """Return the commands for a store of this kind, `sentinel` or `cluster`."""
    other = {"sentinel": "+cluster:", "cluster": "+sentinel:"}[kind]
    lines = [line.removeprefix("$ ") for line in section().splitlines() if line.startswith("$ ")]
    return [line for line in lines if other not in line]
