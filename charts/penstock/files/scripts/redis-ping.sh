#!/bin/sh
# Whether the server answers and has loaded its data; the user `probe` may do nothing else. Words go to the client.
set -eu
client=$(command -v valkey-cli || command -v redis-cli)
[ "$("$client" --user probe --pass probe --no-auth-warning "$@" ping)" = PONG ]
