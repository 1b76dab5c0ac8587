"""Run every command of docs/sysv.md 5, and compare its output with the page.

The commands run in namespaces of their own for local queues and networks, so keys and ports are those of the page.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from services.sysv.settings import SysvSettings
from tests.docs.bench import commands
from tests.docs.session import Session
from tests.sysv.namespace import own_machine
from tests.sysv.program import Program
from tests.tmq.process import ROOT

PAGE, SECTION = "docs/sysv.md", "## 5 Running it"


def test_the_page() -> None:
    with own_machine(), TemporaryDirectory(prefix="p") as folder:
        session = Session(Path(folder), "tutorials")
        try:
            Program.compiled(session.folder)
            session.start_up("penstock up")
            for command in commands(PAGE, SECTION):
                if command.line.endswith(" &"):
                    session.start_up(command.line.removesuffix(" &"), ready="sysv_started")
                else:
                    session.follow(command)
            session.press_ctrl_c_in(1)
            session.press_ctrl_c_in(0)
        finally:
            session.clear()


def test_the_settings_of_the_page() -> None:
    section = (ROOT / PAGE).read_text().partition(f"\n{SECTION}\n")[2]
    (block,) = re.findall(r"^```yaml\n(.*?)^```", section, re.M | re.S)
    settings = SysvSettings.model_validate(yaml.safe_load(block)["sysv"])
    assert [mapping.permissions for mapping in settings.mappings.values()] == [0o600, 0o660, 0o600]
