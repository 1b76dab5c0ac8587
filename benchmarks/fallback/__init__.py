"""The load generator in Python, for machines without a C compiler: the options and the output of load/main.c.

It is far slower; the results name it and show its ceiling.
"""
