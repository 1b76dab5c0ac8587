#!/bin/sh
# Starts the store's server: its users into a file in memory, then the server in this process's place.
# FILES: where redis.conf and edge.acl are; USERS: the file that is written; DATA: the folder of the data; words are
# further settings.
set -eu
umask 077
files=${FILES:-/etc/redis}
users=${USERS:-/tmp/users.acl}
for password in "$ADMIN_PASSWORD" "$EDGE_PASSWORD"; do
  case $password in
    '' | *[!A-Za-z0-9_.~-]*) echo "passwords have letters, digits and _.~- only, and are not empty" >&2; exit 2 ;;
  esac
done
# Nobody can be the user `default`, but Redis itself is while it loads its file: without rights it would leave out what
# was written as a transaction, as all of ours is, and come up empty.
{
  echo "user default reset off ~* &* +@all"
  echo "user probe reset on nopass +ping"
  echo "user admin reset on >$ADMIN_PASSWORD ~* &* +@all"
  echo "user edge $(cat "$files/edge.acl") >$EDGE_PASSWORD"
} > "$users"
unset ADMIN_PASSWORD EDGE_PASSWORD password
data=${DATA:-/data}
# A pod that was deleted by force may go on while its successor starts: of two servers on one folder, what the older one
# acknowledges is lost. The lock is the server's for as long as it lives.
exec 9> "$data/server.lock"
if ! flock -n 9; then
  echo "another server has $data: this one waits until it has ended" >&2
  flock 9
fi
server=$(command -v valkey-server || command -v redis-server)
exec "$server" "$files/redis.conf" --aclfile "$users" --dir "$data" "$@"
