"""Simulate rings in memory, in virtual time: our nodes, original nodes, a faulty network, and a checker.

`clock` has the events, `network` beacons and reachability, `link` connections; `ours` is a node of ours around
`protos.ring`, `originals` one that keeps to the originals' rules ([R] in ring.md); `store` is what outlives a node;
`plan` derives starts, faults and traffic from a seed, `world` carries them out, `checker` reports errors at the end.
Everything that happens follows from the seed. `python -m tests.ring.simulation SEED` prints the events of one.
"""
