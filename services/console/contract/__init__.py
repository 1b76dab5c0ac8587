"""The contract of the HTTP API: models of documents, problems (RFC 9457), cursors, ETags and roles. Does no I/O."""
