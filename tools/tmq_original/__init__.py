"""Compare a reference listener with TMQ's original server: python -m tools.tmq_original ORIGINAL OURS

Both are addresses, HOST:PORT; the original server must be freshly started, and its last call ends it. It prints the
table in docs/tmq.md. `calls` lists the calls, `conversation` makes them, `table` writes the answers.
"""
