"""Flags of edges, as somebody gave them on a command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.kit.config.layers import SettingPath, Tree, merge, nested


@dataclass(frozen=True, slots=True)
class Flag:
    """A setting of an edge that has a flag of its own beside `--set`, on every command line that serves the edge."""

    name: str  # "--neighbour"; no other edge and no command may have the same
    field: str  # the path of the setting below `edges.<name>`, with dots
    metavar: str  # what stands for the value in the help
    help: str
    repeatable: bool = False  # given several times, the values make a list


@dataclass(frozen=True, slots=True)
class GivenFlag:
    """A flag and its values: one, or with a repeatable flag as many as there were."""

    edge: str
    flag: Flag
    values: tuple[str, ...]

    @property
    def path(self) -> SettingPath:
        """Of the setting."""
        return ("edges", self.edge, *self.flag.field.split("."))

    @property
    def words(self) -> list[str]:
        """The same for another command line."""
        return [f"{self.flag.name}={value}" for value in self.values]


def tree_of(given: Sequence[GivenFlag]) -> Tree:
    """Nested as in the file. Values are text, as from the environment: the settings know what they mean.

    A repeatable flag's empty values are left out: a script may say `--neighbour "$N"` where there is none, and the list
    is empty then, whatever the file says.
    """
    tree: Tree = {}
    for one in given:
        value = [value for value in one.values if value] if one.flag.repeatable else one.values[-1]
        tree = merge(tree, nested(one.path, value))
    return tree


def names_of(given: Sequence[GivenFlag]) -> dict[SettingPath, str]:
    """Which flag said what stands at a path."""
    return {one.path: one.flag.name for one in given}
