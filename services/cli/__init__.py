"""The command line: `penstock`.

`__main__` is the entry point and installs the SIGTERM handler before it imports anything else; `main` lists the
commands and turns errors into one line and an exit code. Layers, top down: `commands`, `framework`, `local`,
`documents`, `terminal`; `reference` generates pages of the documentation.

It may import the store and the kit, but neither Redis nor any edge: edges are discovered, never named.
"""
