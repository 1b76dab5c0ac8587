"""Tables of what happened, each from the archived rows of one hour, as Arrow has them: nothing here knows of Spark.

Rows come in chunks, of any files in any order; what is kept of a chunk is small. Sums are whole numbers, everything
else is computed from them by one expression at the end: so the same rows give the same octets, however they came.
"""
