"""The gold tables: DataFrame functions over well rows of bronze, one module a table, and their writing.

A function takes rows with the columns `day`, `hour`, `dataset` and those of `services.redis_stream.schema`, and returns
the columns of its table in `services.analytics.tables`. Functions know nothing of files; `rewrite` reads and writes.
"""
