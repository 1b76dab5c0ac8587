"""The data source of the job: it reads entries of a store, writes them to files of bronze, and returns the files.

Reading, cleaning and writing happen in one task, in Arrow: rows cross neither into Java nor between processes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from services.analytics.bronze.writing import FILES, Writing
from services.analytics.cleaning.cleaning import Cleaning
from services.redis_stream.following import Following
from services.redis_stream.options import Options
from services.redis_stream.schema import COLUMNS, Kind

NAME = "redis_stream_files"
WRITING = "writing"  # option: the fields of Writing as JSON; the others are those of `redis_stream`


def writing_option(writing: Writing) -> dict[str, str]:
    """Return the option that tells the data source how to clean, and where to write."""
    return {WRITING: json.dumps(asdict(writing))}


class Records(DataSource):
    """Entries of a store as files of bronze, for streaming queries."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns that describe a file."""
        return from_arrow_schema(FILES)

    def streamReader(self, schema: StructType) -> Following:
        """Return a reader for a streaming query. Raises OptionError."""
        own = {name: value for name, value in dict(self.options).items() if name.lower() != WRITING}
        writing = self._writing()
        return Following(Options.parse(own), [each.name for each in COLUMNS[writing.cleaning.kind]], writing)

    def _writing(self) -> Writing:
        options: Mapping[str, str] = dict(self.options)
        told = json.loads(options[WRITING])
        cleaning = told["cleaning"]
        lists = {name: tuple(cleaning[name]) for name in ("names", "redact")}
        return Writing(
            **{**told, "cleaning": Cleaning(**{**cleaning, **lists, "kind": Kind(cleaning["kind"])})}
        )
