"""Turn the flags of edges on a command line into settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.kit.config.layers import SettingPath, Tree, merge, nested


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag for one setting of an edge, on every command line that serves the edge."""

    name: str  # "--neighbour"; unique among all edges and commands
    field: str  # dotted path of the setting below `edges.<name>`
    metavar: str  # placeholder of the value in the help
    help: str
    repeatable: bool = False  # may be given several times; the values make a list


@dataclass(frozen=True, slots=True)
class GivenFlag:
    """A flag on a command line and its values: one, or several of a repeatable flag."""

    edge: str
    flag: Flag
    values: tuple[str, ...]

    @property
    def path(self) -> SettingPath:
        """Return the path of the setting."""
        return ("edges", self.edge, *self.flag.field.split("."))

    @property
    def words(self) -> list[str]:
        """Return the arguments that give the same flag on another command line."""
        return [f"{self.flag.name}={value}" for value in self.values]


def tree_of(given: Sequence[GivenFlag]) -> Tree:
    """Return the flags as a tree of settings, with text values as from the environment.

    Empty values of a repeatable flag are dropped: a script may pass `--neighbour "$N"` with an empty N, and the list is
    then empty, even if the file sets it.
    """
    tree: Tree = {}
    for one in given:
        value = [value for value in one.values if value] if one.flag.repeatable else one.values[-1]
        tree = merge(tree, nested(one.path, value))
    return tree


def names_of(given: Sequence[GivenFlag]) -> dict[SettingPath, str]:
    """Return the flag that set each path."""
    return {one.path: one.flag.name for one in given}
