"""Check that blocks of YAML on the pages can be pasted: settings are valid, and documents can be declared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from services.cli.documents.documents import read_documents
from tests.cli.shell import Shell
from tests.docs.blocks import pages
from tests.tmq.process import ROOT

BLOCK = re.compile(r"^```yaml.*?\n(.*?)^```", re.M | re.S)
OF_THE_CHART = {"docs/chart.md", "charts/penstock/README.md"}  # tests/docs/test_chart_page.py
FOUND = [
    pytest.param(page, text, id=f"{page}-{number}")
    for page in pages()
    for number, text in enumerate(BLOCK.findall((ROOT / page).read_text()))
]
FILE_OF_THE_CHART = "# docs/examples/chart/"  # each is rendered: tests/docs/test_chart_page.py
# placeholder for digests of tokens; rejected, so that it is never copied as it is
IN_PLACE_OF_DIGESTS = "WHAT-SHA256SUM-SAYS"


@pytest.mark.parametrize(("page", "text"), FOUND)
def test_yaml_block_is_valid(page: str, text: str, tmp_path: Path) -> None:
    documents = [each for each in yaml.safe_load_all(text) if each is not None]
    path = tmp_path / "pasted.yaml"
    path.write_text(text)
    if text.startswith(FILE_OF_THE_CHART):
        name, _, shown = text.partition("\n")
        assert yaml.safe_load(shown) == yaml.safe_load((ROOT / name.removeprefix("# ")).read_text())
        return
    if page in OF_THE_CHART:
        return
    if any("metadata" in each for each in documents):
        if documents[0].get("apiVersion", "penstock.dev/v1alpha1") == "penstock.dev/v1alpha1":
            assert len(read_documents(path)) == len(documents)
        return
    assert len(documents) == 1
    if not text.startswith(" "):  # otherwise a fragment
        Shell(tmp_path).run("config", "--config", str(path), code=2 if IN_PLACE_OF_DIGESTS in text else 0)
