"""Give a user id without a name one, as Java refuses to run Spark without (`invalid null input: name`).

Containers run as any user id (`docker run -u 123456`, OpenShift). libnss_wrapper answers user look-ups from a
generated file. Imports nothing that takes time.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path

PLACES = ("/usr/lib", "/usr/lib64")
LIBRARY = "libnss_wrapper.so"


def name_user() -> None:
    """Make Java programs that are started from now on find a name for this process's user id.

    Does nothing where it has one, or where the library is not installed: then Java says what it misses.
    """
    uid = os.getuid()
    library = next((path for place in PLACES for path in Path(place).glob(f"**/{LIBRARY}")), None)
    if library is None or _is_named(uid):
        return
    with tempfile.NamedTemporaryFile("w", prefix="passwd-", delete=False) as users:
        users.write(Path("/etc/passwd").read_text("utf-8", "replace"))
        users.write(f"{uid}:x:{uid}:{os.getgid()}::{os.environ.get('HOME', '/tmp')}:/usr/sbin/nologin\n")
    loaded = os.environ.get("LD_PRELOAD", "")
    os.environ["LD_PRELOAD"] = f"{library} {loaded}".strip()
    os.environ["NSS_WRAPPER_PASSWD"], os.environ["NSS_WRAPPER_GROUP"] = users.name, "/etc/group"


def _is_named(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
