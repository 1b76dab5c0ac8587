"""The bronze tables: entries of the store, each once, in Parquet files that the tasks that read them write.

`records` is the data source of the streaming query, `writing` its files, `ingest` the query and its commits, and `log`
finds what was committed since a version. Rows never pass through Java.
"""
