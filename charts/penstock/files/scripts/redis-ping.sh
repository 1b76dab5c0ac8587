#!/bin/sh
# Check that the server answers and has loaded its data; the user `probe` may only PING. Arguments go to redis-cli.
set -eu
client=$(command -v valkey-cli || command -v redis-cli)
[ "$("$client" --user probe --pass probe --no-auth-warning "$@" ping)" = PONG ]
