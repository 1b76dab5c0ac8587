"""The command line: `penstock`.

`main` is the entry point and the one place where errors become a line and an exit code (`exits`). A command's module
holds its options and its words (`queues`, `messages`, `dead`, `doctor`, `config`, `store`, `serve`, `up`); what they
share is `command` (options, settings, opening the store), `place` (which store is meant), `output` (tables, JSON,
progress), `streams` (standard input and output without standing still) and `text` (strangers' bytes made fit for a
terminal). `up` is put together from `folder` (the data folder and its lock), `own_store` (the embedded store under
watch), `edge_process` (an edge as a child under watch), `logbook` (their logs) and `documents` (queues.yaml).

It may import the store and the kit; it must not know Redis, nor any edge: edges are found, never named.
"""
