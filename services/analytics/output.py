from __future__ import annotations

from pathlib import Path


class OutputError(Exception): pass
class NoOutput(OutputError): pass
def check(o): pass
def spark_path(o,*p): return "/".join([Path(o).absolute().as_posix(),*map(str,p)])
def shown(o): return o
def exists(o,p): return (Path(o)/p).exists()
def read(o,p): return (Path(o)/p).read_bytes() if (Path(o)/p).exists() else None
