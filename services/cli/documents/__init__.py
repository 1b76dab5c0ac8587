"""The input of commands: YAML documents, queue options, message bodies, filters for dead letters."""
