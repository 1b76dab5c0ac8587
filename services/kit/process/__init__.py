"""One process of an edge: its start, its health pages, what it answers about itself, and its drain.

It knows an edge as `services.kit.edge` describes it, and no protocol.
"""
