"""The handlers of the routes, by what they are about. Each takes a checked `Call`, and raises Problem or StoreError."""
