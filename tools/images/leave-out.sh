#!/bin/sh
# leave-out.sh LIST: remove the listed files from the packages in /opt/penstock. Fails if a pattern matches nothing, as after
# an update of a package.
set -eu
cd "$(/opt/penstock/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
sed 's/ *#.*//; /^$/d' "$1" | while read -r pattern; do
  # shellcheck disable=SC2086
  set -- $pattern
  [ -e "$1" ] || { echo "leave-out.sh: there is no $pattern" >&2; exit 1; }
  rm -r -- "$@"
done
