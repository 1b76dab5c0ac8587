"""The tables of one hour, computed from its archived rows with Arrow and without Spark.

Rows arrive in chunks from any files in any order; little is kept of each chunk. Sums are whole numbers, and everything
else is computed from them by one expression at the end: the same rows give the same octets in any order.
"""
