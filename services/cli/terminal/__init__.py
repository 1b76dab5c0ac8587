"""Standard input and output: tables, JSON, progress, exit codes, and escaping of bytes for a terminal."""
