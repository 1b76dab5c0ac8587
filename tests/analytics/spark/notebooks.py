"""Execute notebooks by the Python of the tests, and read the tables that their cells print."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests.analytics.spark.test_kills import PATIENCE_S, environment
from tests.redis_stream.spark.session import ROOT

NOTEBOOK = "docs/examples/analytics.ipynb"
KERNEL = "penstock"
PNG = "image/png"


def read_cells(path: str) -> list[NotebookNode]:
    """Return the cells of a notebook with code."""
    notebook = nbformat.read(ROOT / path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def execute(path: str, output: Path, folder: Path) -> list[NotebookNode]:
    """Execute a notebook on an output of the job, and return its cells with code.

    Args:
        path: the notebook, in the repository.
        output: what PENSTOCK_ANALYTICS_OUTPUT names.
        folder: all files of Jupyter are written below it; the kernel is described there.
    """
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    described = folder / "kernels" / KERNEL / "kernel.json"
    described.parent.mkdir(parents=True)
    described.write_text(json.dumps({"argv": argv, "display_name": KERNEL, "language": "python"}))
    places = {"JUPYTER_PATH": ".", "JUPYTER_RUNTIME_DIR": "runtime", "JUPYTER_CONFIG_DIR": "config"}
    own = {"IPYTHONDIR": "ipython", "MPLCONFIGDIR": "matplotlib", **places}
    known = {name: str(folder / place) for name, place in own.items()}
    notebook = nbformat.read(ROOT / path, as_version=nbformat.NO_CONVERT)
    client = NotebookClient(
        notebook,
        timeout=PATIENCE_S,
        kernel_name=KERNEL,
        resources={"metadata": {"path": str(folder)}},
    )
    before = dict(os.environ)
    os.environ |= {name: known[name] for name in places}
    try:
        client.execute(env=environment() | known | {"PENSTOCK_ANALYTICS_OUTPUT": str(output)})
    finally:
        os.environ.clear()
        os.environ |= before
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: NotebookNode) -> str:
    """Return what a cell has printed to its standard output."""
    return "".join(
        each.text for each in cell.outputs if each.output_type == "stream" and each.name == "stdout"
    )


def has_picture(cell: NotebookNode) -> bool:
    return any(PNG in each.get("data", {}) for each in cell.outputs)


def tables(cell: NotebookNode) -> list[list[tuple[str, ...]]]:
    """Return the tables that Spark or DuckDB have printed in a cell: rows of words, the names of columns first."""
    found: list[list[tuple[str, ...]]] = []
    for line in printed(cell).replace("│", "|").splitlines():
        if line.startswith("|"):
            found[-1].append(tuple(word.strip() for word in line.strip("|").split("|")))
        elif line.startswith(("+", "┌")) and (not found or len(found[-1]) != 1):
            found.append([])
    return [table for table in found if table]
