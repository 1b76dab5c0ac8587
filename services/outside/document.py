"""The one reader of YAML and JSON documents.

YAML is read as Kubernetes reads it: what JSON can hold, and nothing else. A date is the text that was written. Every
bad input raises BadDocument with its line and column, and the size of what is made is bounded before it is made.
"""

from __future__ import annotations

import codecs
import json
import math
import re
import sys
from collections.abc import Iterator
from datetime import date
from itertools import islice
from typing import Any, ClassVar

import yaml
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode

DEEPEST = 64  # collections in one another
MOST_NODES = 200_000  # values of one document, each alias counted as what it stands for
MOST_JSON_NODES = (
    2_000_000  # the same of JSON, which programs write: an answer with 20,000 queues has as many
)
LONGEST_NUMBER = 400  # characters; of JSON as many as Python converts
LONGEST_INTEGER = sys.get_int_max_str_digits()
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset(
    f"{_TAG}{kind}" for kind in ("str", "timestamp", "value", "merge")
)  # read as the text written
_DAY = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)")
_STEP = re.compile(r'(\\.|")|[\[{,]', re.DOTALL)  # what comes before a value; see _outside_texts
_NO_NUMBER = re.compile(r'(\\.|")|NaN|-?Infinity|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?', re.DOTALL)
_TEMPLATE = "a key must be plain text; a template such as {{ ... }} must be rendered first"


class BadDocument(ValueError):
    """The text is not a usable document. `line` and `column` begin at 1."""

    def __init__(self, problem: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {problem}")
        self.line = line
        self.column = column


def read_yaml(text: bytes | str, *, any_octets: bool = False) -> list[Any]:
    """Return every document of a YAML stream; None for an empty one. Raises BadDocument, and nothing else.

    any_octets: the escapes "\\udc80" to "\\udcff" are octets that are not UTF-8, as Python's surrogateescape has them.
    """
    decoded = _decoded(text)
    loader: _Loader | None = None
    found = []
    try:
        loader = _Loader(decoded, any_octets)
        while loader.check_data():  # type: ignore[no-untyped-call]
            found.append(loader.get_data())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = _in_one_line(error.problem or error.context or "is not YAML")
        raise BadDocument(problem, *((mark.line + 1, mark.column + 1) if mark else (1, 1))) from None
    except yaml.reader.ReaderError as error:
        raise BadDocument("a character that YAML does not allow", *_place(decoded, error.position)) from None
    except (ValueError, RecursionError, OverflowError):  # an escape such as "\\U00110000"
        line, column = (loader.line + 1, loader.column + 1) if loader is not None else (1, 1)
        raise BadDocument("is not YAML", line, column) from None
    return found


def read_json(text: bytes | str) -> Any:
    """Return the value of a JSON document. Raises BadDocument, and nothing else."""
    decoded = _decoded(text)
    _bound_json(decoded)
    try:
        return json.loads(decoded, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise BadDocument(error.msg, error.lineno, error.colno) from None
    except RecursionError:
        deepest = re.match(rf"(?:[^\[{{]*[\[{{]){{{DEEPEST}}}", decoded)
        raise BadDocument(
            "nested too deeply", *_place(decoded, deepest.end() - 1 if deepest else 0)
        ) from None
    except ValueError as error:  # a constant, or a number of more digits than Python converts
        wrong = next(filter(_is_no_number, _outside_texts(_NO_NUMBER, decoded)), None)
        problem = "the number is too long" if "digits" in str(error) else str(error)
        raise BadDocument(problem, *_place(decoded, wrong.start() if wrong else 0)) from None


def _bound_json(text: str) -> None:
    """Raises BadDocument at the first value too many: each stands behind a bracket or a comma outside of texts."""
    if text.count("[") + text.count("{") + text.count(",") < MOST_JSON_NODES:
        return
    if (excess := next(islice(_outside_texts(_STEP, text), MOST_JSON_NODES - 1, None), None)) is not None:
        problem = f"the document has more than {MOST_JSON_NODES:,} values"
        raise BadDocument(problem, *_place(text, excess.start()))


def _outside_texts(expression: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield what it finds outside of JSON's texts; its first group finds their quotes and what is escaped in them."""
    is_inside = False
    for found in expression.finditer(text):
        if found[1] == '"':
            is_inside = not is_inside
        elif found[1] is None and not is_inside:
            yield found


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without what JSON cannot hold, and with bounds."""

    yaml_constructors: ClassVar[dict[str | None, Any]] = {
        f"{_TAG}{kind}": SafeConstructor.yaml_constructors[f"{_TAG}{kind}"]
        for kind in ("null", "bool", "int", "float", "str", "seq", "map")
    }

    def __init__(self, text: str, any_octets: bool) -> None:
        super().__init__(text)
        self._errors = "surrogateescape" if any_octets else "strict"
        self._depth = 0
        self._sizes: dict[Node, int] = {}  # of those that are complete

    def compose_document(self) -> Node | None:
        self._sizes = {}
        return super().compose_document()

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if self._depth >= DEEPEST:
            raise ConstructorError(None, None, f"nested more than {DEEPEST} levels deep", event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None:
            self._measure(node, event)
        return node

    def _measure(self, node: Node, event: Any) -> None:
        """Bound what it stands for, which with aliases is more than what is written."""
        problem = ""
        if isinstance(event, yaml.AliasEvent):
            problem = "" if node in self._sizes else "an alias stands inside of what it stands for"
        else:
            inner = [] if isinstance(node, ScalarNode) else node.value
            if isinstance(node, MappingNode):
                inner = [each for pair in inner for each in pair]
            self._sizes[node] = 1 + sum(self._sizes[each] for each in inner)
            if self._sizes[node] > MOST_NODES:
                problem = f"the document has more than {MOST_NODES:,} values"
        if problem:
            raise ConstructorError(None, None, problem, event.start_mark)

    def construct_object(self, node: Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except Exception:  # noqa: BLE001  PyYAML's constructors raise what Python's conversions raise
            kind = node.tag.removeprefix(_TAG)
            mark = node.start_mark
            raise ConstructorError(None, None, f"the value is no {kind}", mark) from None

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        if isinstance(node, MappingNode):
            for key, _ in node.value:
                if not isinstance(key, ScalarNode):
                    raise ConstructorError(None, None, _TEMPLATE, key.start_mark)
                if key.tag not in _TEXT_TAGS:
                    problem = f"the key {key.value!r} is no text: put it in quotes"
                    raise ConstructorError(None, None, problem, key.start_mark)
                if key.value in seen:
                    raise ConstructorError(
                        None, None, f"the key {key.value!r} is there twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: Any) -> str:
        text = str(super().construct_scalar(node))
        if node.tag != f"{_TAG}str" and len(text) > LONGEST_NUMBER:
            raise ConstructorError(None, None, "the number is too long", node.start_mark)
        if text.isascii():
            return text
        try:  # JSON writes a character beyond U+FFFF as two escapes
            joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            return joined.encode("utf-8", self._errors).decode("utf-8", self._errors)
        except UnicodeEncodeError:
            problem = "there is half a character in an escape"
            raise ConstructorError(None, None, problem, node.start_mark) from None

    def construct_number(self, node: Any) -> float:
        """JSON has no word for what is no number, or infinite."""
        value = float(super().construct_yaml_float(node))
        if not math.isfinite(value):
            raise ConstructorError(None, None, "the number must be finite", node.start_mark)
        return value

    def construct_day(self, node: Any) -> str:
        """The text of a date, if there is such a day."""
        text = self.construct_scalar(node)
        found = _DAY.match(text)
        try:
            date(*map(int, found.groups()))  # type: ignore[union-attr]
        except (ValueError, AttributeError):
            problem = "there is no such date; put it in quotes if it is a text"
            raise ConstructorError(None, None, problem, node.start_mark) from None
        return text

    def construct_unknown(self, node: Any) -> Any:
        tag = node.tag.removeprefix(_TAG)
        raise ConstructorError(None, None, f"the tag {tag!r} is not known here", node.start_mark)


_Loader.add_constructor(f"{_TAG}float", _Loader.construct_number)
_Loader.add_constructor(f"{_TAG}timestamp", _Loader.construct_day)
_Loader.add_constructor(f"{_TAG}value", _Loader.construct_scalar)
_Loader.add_constructor(None, _Loader.construct_unknown)


def _decoded(text: bytes | str) -> str:
    """Without a byte order mark. Raises BadDocument."""
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    encoding = "utf-16" if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return text.decode(encoding)
    except UnicodeDecodeError as error:
        before = text[: error.start].decode(encoding, "replace")
        raise BadDocument("the text is not UTF-8", *_place(before, len(before))) from None


def _place(text: str, at: int) -> tuple[int, int]:
    """The line and column of a position."""
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("the number must be finite")
    return value


def _is_no_number(found: re.Match[str]) -> bool:
    """Return whether JSON's reader refuses the number, with a ValueError that does not tell the place."""
    text = found[0]
    if (digits := text.lstrip("-")).isdigit():
        return len(digits) > LONGEST_INTEGER
    return not math.isfinite(float(text))
