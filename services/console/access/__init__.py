"""Authentication and authorisation of API requests. Independent of the routes."""
