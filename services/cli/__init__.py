"""The command line: `penstock`.

`__main__` is the entry point, and imports nothing before SIGTERM is heard; `main` lists the commands, and is the one
place where errors become a line and an exit code. Below it, from the top down: `commands`, `framework`, `local`,
`documents`, `terminal`; `reference` makes pages of the documentation.

It may import the store and the kit; it must not know Redis, nor any edge: edges are found, never named.
"""
