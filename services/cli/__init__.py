"""The command line: `penstock`.

`__main__` is the entry point, and imports nothing before SIGTERM is heard; `main` has the commands, and is the one
place where errors become a line and an exit code (`exits`). A command's module
holds its options and its words: `queues` (with `spec_options`), `put` and `get` (with `message` and `bodies`), `rqp`
(with `confirmation`), `dead` (with `selection`), `doctor`, `config`, `store`, `serve`, `up`. What they share is
`command` (options, settings, finding and opening the store), `edge_flags` (what edges add to the options of `serve`,
`up` and `config`), `output` (tables, JSON, progress), `streams` (standard input and output without standing still)
and `text` (strangers' bytes made fit for a terminal). `up` is put together from `folder` (the data folder and its
lock), `own_store` (the embedded store under watch), `edge_process` (an edge as a child under watch), `restarts` (how
soon either is started again), `logbook` (the edges' logs), `documents` (queues.yaml) and `announcement` (what it says
when it is ready); `serve` of `serving`. `settings_table` writes docs/settings.md.

It may import the store and the kit; it must not know Redis, nor any edge: edges are found, never named.
"""
