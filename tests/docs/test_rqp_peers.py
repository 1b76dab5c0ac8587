"""docs/rqp.md, "Peers": the document of the page is applied, and shown as the page shows it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.shell import Shell, running
from tests.docs.bench import BLOCK, words
from tests.tmq.process import ROOT


def test_the_page(tmp_path: Path) -> None:
    section = (ROOT / "docs/rqp.md").read_text().partition("\n## Peers\n")[2].partition("\n## ")[0]
    (document,) = re.findall(r"^```yaml\n(# south.yaml\n.*?)^```", section, re.M | re.S)
    (block,) = BLOCK.findall(section)
    shell = Shell(tmp_path)
    shell.write("south.yaml", document)
    with running(shell):
        for command in block.removeprefix("$ ").split("\n$ "):
            line, _, shown = command.partition("\n")
            assert words(shell.run(*line.split()[1:]).text) == words(shown)
