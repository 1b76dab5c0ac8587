#!/bin/sh
# Start the store's server: write its users to a file in memory, then replace this process by the server.
# FILES: folder of redis.conf and edge.acl; USERS: the file to write; DATA: the data folder; arguments are further
# settings.
set -eu
umask 077
files=${FILES:-/etc/redis}
users=${USERS:-/tmp/users.acl}
for password in "$ADMIN_PASSWORD" "$EDGE_PASSWORD"; do
  case $password in
    '' | *[!A-Za-z0-9_.~-]*) echo "passwords have letters, digits and _.~- only, and are not empty" >&2; exit 2 ;;
  esac
done
# No client can log in as `default`, but Redis itself uses it while it loads the AOF: without rights it would skip
# transactions, which all writes of Penstock are, and start empty.
{
  echo "user default reset off ~* &* +@all"
  echo "user probe reset on nopass +ping"
  echo "user admin reset on >$ADMIN_PASSWORD ~* &* +@all"
  echo "user edge $(cat "$files/edge.acl") >$EDGE_PASSWORD"
} > "$users"
unset ADMIN_PASSWORD EDGE_PASSWORD password
data=${DATA:-/data}
# A pod that was deleted by force may still run while its successor starts: with two servers on one folder, messages that
# the older one acknowledges would be lost. The server holds the lock until it ends.
exec 9> "$data/server.lock"
if ! flock -n 9; then
  echo "another server has $data: this one waits until it has ended" >&2
  flock 9
fi
server=$(command -v valkey-server || command -v redis-server)
exec "$server" "$files/redis.conf" --aclfile "$users" --dir "$data" "$@"
