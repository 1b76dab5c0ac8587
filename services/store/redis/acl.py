"""Compare the access rights of users by the replies to ACL LIST of different servers.

The same rights are worded differently: servers write or leave out default words, and Redis 7.0 lists commands in
another order after each start, many of them as categories (`+@hash -hmset`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

DEFAULTS = frozenset({"sanitize-payload", "resetchannels", "alldbs"})  # words that change nothing
ALL = "@all"


class Selector(NamedTuple):
    """One selector of a user's rules: commands allowed on keys and channels."""

    words: frozenset[str]  # flags, passwords, patterns of keys and channels
    commands: frozenset[str]


class Rights(NamedTuple):
    """A user's rights in a form that can be compared."""

    root: Selector
    others: frozenset[Selector]


class Commands:
    """The servers' commands by category: `@read`, `@all`."""

    def __init__(self) -> None:
        self._members: dict[str, set[str]] = {ALL: set()}

    def learn(self, listed: Iterable[Any]) -> None:
        """Add the commands of a reply to COMMAND, with their subcommands."""
        for name, *_, categories, _tips, _keys, subcommands in listed:
            for category in (ALL, *(category.decode() for category in categories)):
                self._members.setdefault(category, set()).add(name.decode())
            self.learn(subcommands)

    def user(self, line: bytes) -> tuple[str, Rights]:
        """Return the name and the rights in 'user edge on #... ~ps:{* +get (%R~log +get)'."""
        _, name, rest = line.decode("utf-8", "replace").split(" ", 2)
        root, *others = rest.split(" (")
        selectors = frozenset(self._selector(one.removesuffix(")")) for one in others)
        return name, Rights(self._selector(root), selectors)

    def _selector(self, text: str) -> Selector:
        words, allowed = set[str](), set[str]()
        for word in text.split(" "):
            if word.startswith("+"):
                allowed |= self._meant(word[1:], allowed)
            elif word.startswith("-"):
                allowed -= self._meant(word[1:], allowed)
            elif word not in DEFAULTS:
                words.add(word)
        return Selector(frozenset(words), frozenset(allowed))

    def _meant(self, name: str, allowed: set[str]) -> set[str]:
        """Return the commands that a rule for `name` covers: a category's, or one with its subcommands."""
        if name == ALL:
            return self._members[ALL] | allowed
        if name.startswith("@"):
            return self._members.get(name, {name})
        return {name, *(one for one in self._members[ALL] | allowed if one.startswith(f"{name}|"))}
