"""The commands of `penstock`, one module each: its options, and what it prints.

A command knows no other command, and no edge: edges are found.
"""
