"""Check docs/rqp-cast.md: the handling of held messages, and a complete list of labels."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

from protos.rqp_cast import Insertion, ReceiverState, Unanswered, Unheard, Why
from tests.cli.shell import Shell, running
from tests.docs.bench import LEFT
from tests.docs.test_reasons import labels_in
from tests.rqp.cast.hands import HandReceiver
from tests.rqp.cast.net import Net, port_range
from tests.servers import eventually
from tests.tmq.process import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "rqp"
PAGE = (ROOT / "docs/rqp-cast.md").read_text()
ENDS_WELL = {Why.CONFIRMED, Why.SENT}


def machine(folder: Path, net: Net, **cast: str) -> Shell:
    """Return a machine with the files of the page, on ports of its own."""
    shell = Shell(shutil.copytree(EXAMPLES, folder, ignore=LEFT))
    ports = {"REQUEST_PORT": str(net.request_port), "FINDRECEIVER_PORT": str(net.findreceiver_port)}
    own = {"RECEIVER_PORTS": port_range(), "SENDER_PORTS": port_range(), "T_WAIT1_S": "0.5", **cast}
    variables = {f"PENSTOCK_EDGES__RQP__CAST__{name}": value for name, value in {**ports, **own}.items()}
    shell.environment.update(variables)
    listed = folder / "machines.rqprc"
    listed.write_text(re.sub(r"^127.0.0.2$", net.at("127.0.0.2"), listed.read_text(), flags=re.M))
    return shell


async def take_one(net: Net) -> None:
    """Take a message as a receiver that never confirms it."""
    with HandReceiver(net) as receiver:
        await receiver.chosen()
        await receiver.data()


def test_held_messages_are_listed_redriven_and_purged(tmp_path: Path) -> None:
    """Check that the page's commands list, redrive and purge held messages."""
    said = re.findall(r"^\$ penstock (dead .*)$", PAGE.partition("\n## Guarantees\n")[0], re.M)
    assert [line.split()[1] for line in said] == ["list", "redrive", "purge"]
    listing, redrive, purge = (line.replace("unconfirmed", "held").split() for line in said)
    net = Net()
    shop = machine(tmp_path / "shop", net, T_WAIT4_S="1", DEDUPE_WINDOW_S="2", HOLD_MARGIN_S="1.5")
    with running(shop, "--config", "shop.yaml", "--queues", "shop-queues.yaml"):
        shop.run("put", "parts-elsewhere", "a left door")
        for command, wanted in ((redrive, "redrove 1 dead letter"), (purge, "purged 1 dead letter")):
            asyncio.run(take_one(net))
            eventually(lambda: "which may have forgotten it   a left door" in shop.run(*listing).text)
            assert wanted in shop.run(*command).text
        assert "a left door" not in shop.run(*listing).text


def test_each_label_is_on_the_page() -> None:
    failures = {why.value for why in Why} - {why.value for why in ENDS_WELL}
    assert failures <= labels_in(PAGE.partition("\n## When messages")[2].partition("\n## ")[0])
    table = (ROOT / "docs/metrics.md").read_text().splitlines()
    counted = labels_in("\n".join(row for row in table if row.startswith("| `penstock_rqp_cast_")))
    ends = {
        f"timed_out_{state.value}"
        for state in (ReceiverState.WAIT_FOR_APPROVAL, ReceiverState.WAIT_FOR_MESSAGE)
    }
    assert {insertion.value for insertion in Insertion} | ends | {why.value for why in Unheard} <= counted


def test_each_reason_of_silence_is_in_the_protocol() -> None:
    """Check that the protocol lists each reason for which a request is not answered (3.2)."""
    spec = (ROOT / "protos/rqp_cast.md").read_text()
    reasons = spec.partition("\n3.2 ")[2].partition("\n3.3 ")[0]
    assert {reason.value for reason in Unanswered} <= labels_in(reasons)
