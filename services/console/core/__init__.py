"""The base of all handlers: the console's components, validated requests, and routes; without any single route."""
