#!/bin/sh
# Starts the store's server: users into a file in memory, then the server in this process's place.
set -eu
umask 077
for name in ADMIN_PASSWORD EDGE_PASSWORD; do
  eval "password=\$$name"
  case $password in
    '' | *[!A-Za-z0-9_.~-]*) echo "$name: letters, digits and _.~- only, and not empty" >&2; exit 2 ;;
  esac
done
{
  echo "user default reset off"
  echo "user probe reset on nopass +ping"
  echo "user admin reset on >$ADMIN_PASSWORD ~* &* +@all"
  echo "user edge $(cat /etc/redis/edge.acl) >$EDGE_PASSWORD"
} > /tmp/users.acl
unset ADMIN_PASSWORD EDGE_PASSWORD password
server=$(command -v valkey-server || command -v redis-server)
exec "$server" /etc/redis/redis.conf
