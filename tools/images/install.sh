#!/bin/sh
# install.sh REQUIREMENTS | WHEEL ...: put packages into /opt/penstock, by a pip that stays behind with what nobody runs.
set -eu
pip() { /pip/bin/pip --python /opt/penstock/bin/python install --no-compile "$@"; }
case $1 in
  *.whl) pip --no-deps --no-index "$@" ;;
  *)     pip --require-hashes --only-binary :all: -r "$1" ;;
esac
find /opt/penstock -depth -type d \( -name tests -o -name test \) -exec rm -r {} +
find /opt/penstock -type f \( -name '*.c' -o -name '*.h' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' \) -delete
# bytecode of the same sources is the same: it has their hash in place of their time, and nobody looks whether they changed
/opt/penstock/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/penstock/lib
