"""Custom resources as documents: CRDs and schemas, parsing, and status conditions. Accesses no server."""
