"""Implement `penstock analytics`, whose commands need PySpark."""

from __future__ import annotations

import click

from services.cli.terminal.exits import Exit, Failure

try:
    from services.analytics.__main__ import analytics
except ImportError as missing:
    if (missing.name or "").partition(".")[0] not in (
        "pyspark",
        "deltalake",
        "pyarrow",
        "py4j",
        "jinja2",
        "matplotlib",
    ):
        raise

    @click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def analytics(words: tuple[str, ...]) -> None:
        """Analyse what happened in a store and what died, with Apache Spark and Delta Lake."""
        raise Failure(
            Exit.USAGE,
            "no_pyspark",
            "PySpark is not installed: install Penstock with the extra `analytics`, from the checkout or the wheel "
            "that it came from",
        )


__all__ = ["analytics"]
