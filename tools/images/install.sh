#!/bin/sh
# install.sh REQUIREMENTS | WHEEL ...: install packages into /opt/penstock without tests, C sources and pip.
set -eu
pip() { /pip/bin/pip --python /opt/penstock/bin/python install --no-compile "$@"; }
case $1 in
  *.whl) pip --no-deps --no-index "$@" ;;
  *)     pip --require-hashes --only-binary :all: -r "$1" ;;
esac
find /opt/penstock -depth -type d \( -name tests -o -name test \) -exec rm -r {} +
find /opt/penstock -type f \( -name '*.c' -o -name '*.h' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' \) -delete
# reproducible bytecode: it contains the hash of its source instead of the time, and Python does not check for changes
/opt/penstock/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/penstock/lib
