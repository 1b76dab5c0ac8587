"""The data source of the job: `redis_stream` whose rows are cleaned where they are read, in the same Python process.

So bodies that are not kept never reach Java, and no second function of Python is applied to the rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from services.analytics.cleaning.cleaning import Cleaning
from services.analytics.tables import BRONZE
from services.redis_stream.following import Following
from services.redis_stream.options import Options
from services.redis_stream.schema import COLUMNS, Kind

NAME = "redis_stream_cleaned"
CLEANING = "cleaning"  # option: the fields of Cleaning as JSON; the others are those of `redis_stream`


def cleaning_option(cleaning: Cleaning) -> dict[str, str]:
    """Return the option that tells the data source how to clean."""
    return {CLEANING: json.dumps(asdict(cleaning))}


class Records(DataSource):
    """Entries of a store as rows of bronze, for streaming queries."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of bronze."""
        return BRONZE[self._cleaning().kind].schema()

    def streamReader(self, schema: StructType) -> Following:
        """Return a reader of all columns, for a streaming query. Raises OptionError."""
        own = {name: value for name, value in dict(self.options).items() if name.lower() != CLEANING}
        cleaning = self._cleaning()
        return Following(Options.parse(own), [each.name for each in COLUMNS[cleaning.kind]], cleaning)

    def _cleaning(self) -> Cleaning:
        options: Mapping[str, str] = dict(self.options)
        told = json.loads(options[CLEANING])
        lists = {name: tuple(told[name]) for name in ("names", "redact")}
        return Cleaning(**{**told, **lists, "kind": Kind(told["kind"])})
