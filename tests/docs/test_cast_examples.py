"""The files of docs/examples/rqp for RQP/cast are run as docs/rqp.md says; its labels are all on the page."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from protos.rqp_cast import Insertion, ReceiverState, Unanswered, Unheard, Why
from tests.cli.shell import Shell, running
from tests.docs.test_reasons import told_in
from tests.rqp.cast_net import port_range
from tests.servers import eventually, free_port
from tests.tmq.process import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "rqp"
PAGE = (ROOT / "docs/rqp.md").read_text().partition("\n## RQP/cast\n")[2]
ENDS_WELL = {Why.CONFIRMED, Why.SENT}


def test_two_machines(tmp_path: Path) -> None:
    """What is put in at the shop stands at the depot; while that is away, the queue's condition says so."""
    depot, shop = (Shell(shutil.copytree(EXAMPLES, tmp_path / name)) for name in ("depot", "shop"))
    ports = {"REQUEST_PORT": str(free_port()), "FINDRECEIVER_PORT": str(free_port())}
    for shell in (depot, shop):
        own = {"RECEIVER_PORTS": port_range(), "SENDER_PORTS": port_range(), "T_WAIT1_S": "0.5"}
        told = {f"PENSTOCK_EDGES__RQP__CAST__{name}": value for name, value in {**ports, **own}.items()}
        shell.environment.update(told)
    listed = tmp_path / "shop" / "machines.rqprc"
    listed.write_text(
        re.sub(r"^127.0.0.2$", f"127.0.0.2:{ports['REQUEST_PORT']}", listed.read_text(), flags=re.M)
    )
    with running(shop, "--config", "shop.yaml", "--queues", "shop-queues.yaml"):
        with running(depot, "--config", "depot.yaml", "--queues", "depot-queues.yaml"):
            shop.run("put", "parts-elsewhere", "a left door")
            eventually(lambda: "a left door" in depot.run("peek", "parts", "--config", "depot.yaml").text)
        shop.run("put", "parts-elsewhere", "a right door")
        eventually(lambda: "no_answer: no machine answers" in shop.run("queue", "list").text)


def test_each_label_is_on_the_page() -> None:
    failures = {why.value for why in Why} - {why.value for why in ENDS_WELL}
    assert failures <= told_in(PAGE.partition("### When it does not")[2].partition("\n### ")[0])
    counted = told_in(PAGE.partition("### What is counted of it")[2])
    ends = {
        f"timed_out_{state.value}"
        for state in (ReceiverState.WAIT_FOR_APPROVAL, ReceiverState.WAIT_FOR_MESSAGE)
    }
    assert {insertion.value for insertion in Insertion} | ends | {why.value for why in Unheard} <= counted


def test_each_reason_of_silence_is_in_the_protocol() -> None:
    """3.2"""
    spec = (ROOT / "protos/rqp_cast.md").read_text()
    reasons = spec.partition("\n3.2 ")[2].partition("\n3.3 ")[0]
    assert {reason.value for reason in Unanswered} <= told_in(reasons)
