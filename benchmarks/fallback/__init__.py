"""The load generator in Python, for machines without a C compiler: the options and the output of load/main.c.

Slower by far; the results name it, and its ceiling stands beside them.
"""
