"""A griffe extension: the comment of a field, an enum member or a constant is its documentation.

The code says a field's meaning and unit in a comment behind it or directly above. Fields and members become the
"Attributes" of their class's docstring; members are shown with their values. A pydantic field's `description` counts as
its comment.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import tokenize
from pathlib import Path
from typing import Any

import griffe

SECTION = re.compile(r"[0-9]+(\.[0-9]+)*")  # of a specification
DIRECTIVES = ("fmt:", "type:", "noqa", "pragma:")


class Comments(griffe.Extension):
    """Make docstrings of comments."""

    def on_attribute_instance(
        self, *, node: ast.AST | griffe.ObjectNode, attr: griffe.Attribute, **_: Any
    ) -> None:
        """Document an attribute that has no docstring by its comment."""
        if attr.docstring is None and isinstance(node, ast.AST) and (text := _comment(node, attr)):
            attr.docstring = griffe.Docstring(text, parent=attr, parser=griffe.Parser.google)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """List the documented fields of a class in its docstring."""
        fields = [
            each for each in cls.members.values() if isinstance(each, griffe.Attribute) and _is_field(each)
        ]
        if not fields:
            return
        own = cls.docstring.value if cls.docstring is not None else ""
        lines = [f"    {each.name}: {_described(each)}" for each in fields]
        text = "\n".join([own.rstrip(), "", "Attributes:", *lines])
        cls.docstring = griffe.Docstring(text.lstrip(), parent=cls, parser=griffe.Parser.google)
        for each in fields:
            each.docstring = None  # shown once


def _is_field(attribute: griffe.Attribute) -> bool:
    """Return whether an attribute is a public field, with a docstring or a constant value; properties are no fields."""
    if attribute.name.startswith("_") or "property" in attribute.labels:
        return False
    return attribute.docstring is not None or _is_constant(attribute)


def _is_constant(attribute: griffe.Attribute) -> bool:
    """Return whether an attribute is a member of an enumeration or the like: a value without a type."""
    return attribute.annotation is None and "class-attribute" in attribute.labels


def _described(field: griffe.Attribute) -> str:
    said = [f"`{field.value}`"] if _is_constant(field) else []
    if field.docstring is not None:
        said.append(_text(field.docstring.value))
    return ", ".join(said)


def _text(comment: str) -> str:
    """Return a comment as one line of Markdown; angle brackets outside code would be taken for HTML."""
    parts = " ".join(comment.split()).split("`")
    text = "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))
    return f"({text})" if SECTION.fullmatch(text) else text


def _comment(node: ast.AST, attribute: griffe.Attribute) -> str:
    """Return a pydantic field's description, or the comment behind or directly above a statement."""
    if described := _description(node):
        return described
    if not isinstance(node, ast.stmt) or node.end_lineno is None:
        return ""
    assert isinstance(attribute.filepath, Path)  # a list for namespace packages, which have no attributes
    lines = attribute.lines_collection[attribute.filepath]
    return _behind(lines[node.end_lineno - 1]) or _above(lines, node)


def _behind(line: str) -> str:
    """Return the comment at the end of a line, which may be the last of a longer statement."""
    found = ""
    # a part of a statement is no valid Python
    with contextlib.suppress(tokenize.TokenError, IndentationError):
        for each in tokenize.generate_tokens(io.StringIO(line.strip()).readline):
            if each.type == tokenize.COMMENT:
                found = each.string.lstrip("# ")
    return "" if found.startswith(DIRECTIVES) else found


def _above(lines: list[str], node: ast.stmt) -> str:
    """Return the comment whose lines end directly above a statement, at its own indentation."""
    found: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.startswith(f"{' ' * node.col_offset}# "):
            break
        found.insert(0, line.strip().lstrip("# "))
    return " ".join(found)


def _description(node: ast.AST) -> str:
    """Return the text of an argument `description=`; '' without one."""
    for each in ast.walk(node):
        if (
            isinstance(each, ast.keyword)
            and each.arg == "description"
            and isinstance(each.value, ast.Constant)
        ):
            return str(each.value.value)
    return ""
