"""The commands of `penstock`, one module each: its options and its output.

Commands do not import each other, nor any edge.
"""
