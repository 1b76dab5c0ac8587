"""The function library: its files, and that edges may run all of it."""

import re
from pathlib import Path

from services.store.model.records import PER_ENTRY
from services.store.redis import PUBLISH_LIMIT, library
from services.store.redis.library import FILES, LIBRARY, source
from services.store.redis.rights import COMMANDS
from tests.servers import Server
from tests.store.desk import Desk
from tests.stores import every_server

LUA = Path(library.__file__).parents[1] / "lua"
CALLED = re.compile(r"\b(?:call|redis\.call|in_parts)\('([A-Z]+)'")


def test_constants_are_those_of_other_modules() -> None:
    sidebar = (LUA.parents[1] / "console" / "page" / "components" / "sidebar.js").read_text()
    assert number("local GUARD", source()) == number("const FULL_ABOVE", sidebar) == PUBLISH_LIMIT
    assert number("local PER_ENTRY", source()) == PER_ENTRY


def number(name: str, text: str) -> float:
    found = re.search(rf"^{name} = ([\d.]+)", text, re.M)
    assert found, name
    return float(found[1])


def test_library_has_every_lua_file() -> None:
    assert sorted(path.stem for path in LUA.glob("*.lua")) == sorted(FILES)


def test_acl_allows_every_command_of_the_library() -> None:
    """Check that edges may run every command of the library, as functions run with the caller's rights."""
    used = {command.lower() for command in CALLED.findall(source())}
    allowed = {command.partition("|")[0] for command in COMMANDS}
    assert used - allowed == set()


@every_server
def test_functions_have_versioned_names_and_can_be_reloaded(server: Server) -> None:
    for _ in range(2):
        assert server.call("FUNCTION", "LOAD", "REPLACE", source()) == LIBRARY.encode()
    (found,) = server.call("FUNCTION", "LIST", "LIBRARYNAME", LIBRARY)
    fields = dict(zip(found[::2], found[1::2], strict=True))
    names = {dict(zip(f[::2], f[1::2], strict=True))[b"name"] for f in fields[b"functions"]}
    assert b"ps1_work" in names
    assert all(name.startswith(b"ps1_") for name in names)


async def test_loaded_library_is_not_written_again(own_server: Server) -> None:
    """Check that a loaded library is not written to the disk again (docs/operations.md, "A store of your own")."""
    async with Desk(own_server) as desk:
        await desk.store.initialise()
        assert loads(own_server) == 1
        own_server.call("FUNCTION", "LOAD", "REPLACE", source() + "\n-- of another version")
        await desk.store.initialise()
        assert loads(own_server) == 3
        assert source().encode() in own_server.call("FUNCTION", "LIST", "WITHCODE")[0]
        own_server.call("FUNCTION", "FLUSH")
        await desk.store.initialise()
        assert loads(own_server) == 4


def loads(server: Server) -> int:
    found = re.search(rb"cmdstat_function\|load:calls=(\d+)", server.call("INFO", "commandstats"))
    assert found
    return int(found[1])


def test_library_defines_no_globals() -> None:
    """Check that all top-level names are local, so that two libraries on one server do not collide."""
    top = [line for line in source().splitlines() if re.match(r"(function \w+\(|[A-Za-z_]\w*\s*=[^=])", line)]
    assert [line for line in top if not line.startswith("evict =")] == []
