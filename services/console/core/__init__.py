"""What all handlers work with: the console's components, validated requests, and routes. Knows no single route."""
