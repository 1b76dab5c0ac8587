"""Whole rings in memory, in virtual time: our nodes, nodes of the originals, a bad network, and who checks them.

`clock` has the events, `network` beacons and reachability, `link` connections; `ours` is a node of ours around
`protos.ring`, `originals` one that keeps to the originals' rules ([R] in ring.md); `store` is what outlives a node;
`plan` makes starts, faults and traffic of a seed, `world` carries them out, `checker` says what is wrong in the end.
Everything that happens follows from the seed. `python -m tests.ring.simulation SEED` tells the story of one.
"""
