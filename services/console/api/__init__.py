"""The handlers of the routes. Each takes a validated `Call`, and raises Problem or StoreError."""
