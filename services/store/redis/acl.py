"""What users of a Redis or Valkey server may do, whichever words its ACL LIST has for it.

The words differ between servers with the same users: a server writes or leaves out the words of defaults, Redis 7.0
lists commands in an order of its own at each start and turns many of them into categories (`+@hash -hmset`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

DEFAULTS = frozenset({"sanitize-payload", "resetchannels", "alldbs"})  # words that change nothing
ALL = "@all"


class Selector(NamedTuple):
    """What one part of a user's rules allows: these commands on these keys and channels."""

    words: frozenset[str]  # flags, passwords, patterns of keys and channels
    commands: frozenset[str]


class Rights(NamedTuple):
    """What a user may do, as far as servers tell: rights that are equal allow the same."""

    root: Selector
    others: frozenset[Selector]


class Commands:
    """The commands that servers know, by their categories: `@read`, `@all`."""

    def __init__(self) -> None:
        self._members: dict[str, set[str]] = {ALL: set()}

    def learn(self, listed: Iterable[Any]) -> None:
        """Add those of a reply to COMMAND, with their subcommands."""
        for name, *_, categories, _tips, _keys, subcommands in listed:
            for category in (ALL, *(category.decode() for category in categories)):
                self._members.setdefault(category, set()).add(name.decode())
            self.learn(subcommands)

    def user(self, line: bytes) -> tuple[str, Rights]:
        """Return the name in 'user edge on #... ~ps:{* +get (%R~log +get)', and what the user may do."""
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
        """Return what a rule for `name` is about: members of a category, or a command with its subcommands."""
        if name == ALL:
            return self._members[ALL] | allowed
        if name.startswith("@"):
            return self._members.get(name, {name})
        return {name, *(one for one in self._members[ALL] | allowed if one.startswith(f"{name}|"))}
