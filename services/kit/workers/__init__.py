"""Several processes serve one edge on shared ports: they are supervised here, and their metrics joined.

It knows an edge as `services.kit.edge` describes it, and no protocol.
"""
