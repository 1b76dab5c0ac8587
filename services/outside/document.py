"""Read YAML and JSON documents.

YAML is read as Kubernetes reads it: only what JSON can represent; dates are texts. Every bad input raises BadDocument
with its line and column. The size of a document is checked before its values are built.
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

MAX_DEPTH = 64  # nested collections
MAX_NODES = 200_000  # values of a document, with aliases expanded
MAX_JSON_NODES = 2_000_000  # in JSON, which programs write: a response with 20,000 queues has as many
MAX_NUMBER = 400  # characters, in YAML
MAX_INTEGER = sys.get_int_max_str_digits()  # digits, in JSON
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset(f"{_TAG}{kind}" for kind in ("str", "timestamp", "value", "merge"))  # read as text
_DAY = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)")
_STEP = re.compile(r'(\\.|")|[\[{,]', re.DOTALL)  # precedes a value; see _outside_texts
_NUMBER = re.compile(r'(\\.|")|NaN|-?Infinity|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?', re.DOTALL)
_TEMPLATE = "a key must be plain text; a template such as {{ ... }} must be rendered first"


class BadDocument(ValueError):
    """An unusable document. `line` and `column` begin at 1."""

    def __init__(self, problem: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {problem}")
        self.line = line
        self.column = column


def read_yaml(text: bytes | str, *, any_octets: bool = False) -> list[Any]:
    r"""Return every document of a YAML stream; None for an empty one. Raises BadDocument, and nothing else.

    With `any_octets`, the escapes "\udc80" to "\udcff" are octets that are not UTF-8, as Python's surrogateescape.
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
        return json.loads(decoded, parse_constant=_reject_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise BadDocument(error.msg, error.lineno, error.colno) from None
    except RecursionError:
        deepest = re.match(rf"(?:[^\[{{]*[\[{{]){{{MAX_DEPTH}}}", decoded)
        raise BadDocument(
            "nested too deeply", *_place(decoded, deepest.end() - 1 if deepest else 0)
        ) from None
    except ValueError as error:  # a constant, or a number of more digits than Python converts
        wrong = next(filter(_is_bad_number, _outside_texts(_NUMBER, decoded)), None)
        problem = "the number is too long" if "digits" in str(error) else str(error)
        raise BadDocument(problem, *_place(decoded, wrong.start() if wrong else 0)) from None


def _bound_json(text: str) -> None:
    """Raise BadDocument at the first value too many: each follows a bracket or a comma outside of texts."""
    if text.count("[") + text.count("{") + text.count(",") < MAX_JSON_NODES:
        return
    if (excess := next(islice(_outside_texts(_STEP, text), MAX_JSON_NODES - 1, None), None)) is not None:
        problem = f"the document has more than {MAX_JSON_NODES:,} values"
        raise BadDocument(problem, *_place(text, excess.start()))


def _outside_texts(expression: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield matches outside of JSON's texts. The first group must match quotes and escapes."""
    is_inside = False
    for found in expression.finditer(text):
        if found[1] == '"':
            is_inside = not is_inside
        elif found[1] is None and not is_inside:
            yield found


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, limited in size and to what JSON can represent."""

    yaml_constructors: ClassVar[dict[str | None, Any]] = {
        f"{_TAG}{kind}": SafeConstructor.yaml_constructors[f"{_TAG}{kind}"]
        for kind in ("null", "bool", "int", "float", "str", "seq", "map")
    }

    def __init__(self, text: str, any_octets: bool) -> None:
        super().__init__(text)
        self._errors = "surrogateescape" if any_octets else "strict"
        self._depth = 0
        self._sizes: dict[Node, int] = {}  # of complete nodes

    def compose_document(self) -> Node | None:
        """Compose a document with limits of its own."""
        self._sizes = {}
        return super().compose_document()

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Compose a node, limited in depth and size."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if self._depth >= MAX_DEPTH:
            raise ConstructorError(None, None, f"nested more than {MAX_DEPTH} levels deep", event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None:
            self._measure(node, event)
        return node

    def _measure(self, node: Node, event: Any) -> None:
        """Limit the size of a node with its aliases expanded."""
        problem = ""
        if isinstance(event, yaml.AliasEvent):
            problem = "" if node in self._sizes else "an alias refers to a node that contains it"
        else:
            inner = [] if isinstance(node, ScalarNode) else node.value
            if isinstance(node, MappingNode):
                inner = [each for pair in inner for each in pair]
            self._sizes[node] = 1 + sum(self._sizes[each] for each in inner)
            if self._sizes[node] > MAX_NODES:
                problem = f"the document has more than {MAX_NODES:,} values"
        if problem:
            raise ConstructorError(None, None, problem, event.start_mark)

    def construct_object(self, node: Node, deep: bool = False) -> Any:
        """Construct a value; raise ConstructorError for one that is malformed."""
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except Exception:  # noqa: BLE001 - PyYAML passes on any error of a conversion
            kind = node.tag.removeprefix(_TAG)
            mark = node.start_mark
            raise ConstructorError(None, None, f"the value is not a valid {kind}", mark) from None

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping; reject keys that are not text or are repeated."""
        seen = set()
        if isinstance(node, MappingNode):
            for key, _ in node.value:
                if not isinstance(key, ScalarNode):
                    raise ConstructorError(None, None, _TEMPLATE, key.start_mark)
                if key.tag not in _TEXT_TAGS:
                    problem = f"the key {key.value!r} is not text: put it in quotes"
                    raise ConstructorError(None, None, problem, key.start_mark)
                if key.value in seen:
                    raise ConstructorError(None, None, f"the key {key.value!r} is repeated", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: Any) -> str:
        """Construct a text; join escaped surrogates, and reject long numbers."""
        text = str(super().construct_scalar(node))
        if node.tag != f"{_TAG}str" and len(text) > MAX_NUMBER:
            raise ConstructorError(None, None, "the number is too long", node.start_mark)
        if text.isascii():
            return text
        try:  # JSON escapes characters beyond U+FFFF as two surrogates
            joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            return joined.encode("utf-8", self._errors).decode("utf-8", self._errors)
        except UnicodeEncodeError:
            problem = "an escape has an incomplete character (a lone surrogate)"
            raise ConstructorError(None, None, problem, node.start_mark) from None

    def construct_number(self, node: Any) -> float:
        """Construct a finite float: JSON has no NaN or infinity."""
        value = float(super().construct_yaml_float(node))
        if not math.isfinite(value):
            raise ConstructorError(None, None, "the number must be finite", node.start_mark)
        return value

    def construct_day(self, node: Any) -> str:
        """Return the text of a date. Raises ConstructorError if the date does not exist."""
        text = self.construct_scalar(node)
        found = _DAY.match(text)
        try:
            date(*map(int, found.groups()))  # type: ignore[union-attr]
        except (ValueError, AttributeError):
            problem = "the date does not exist; put it in quotes if it is a text"
            raise ConstructorError(None, None, problem, node.start_mark) from None
        return text

    def construct_unknown(self, node: Any) -> Any:
        """Reject an unknown tag."""
        tag = node.tag.removeprefix(_TAG)
        raise ConstructorError(None, None, f"the tag {tag!r} is not supported", node.start_mark)


_Loader.add_constructor(f"{_TAG}float", _Loader.construct_number)
_Loader.add_constructor(f"{_TAG}timestamp", _Loader.construct_day)
_Loader.add_constructor(f"{_TAG}value", _Loader.construct_scalar)
_Loader.add_constructor(None, _Loader.construct_unknown)


def _decoded(text: bytes | str) -> str:
    """Return the text without its byte order mark. Raises BadDocument."""
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    encoding = "utf-16" if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return text.decode(encoding)
    except UnicodeDecodeError as error:
        before = text[: error.start].decode(encoding, "replace")
        raise BadDocument("the text is not UTF-8", *_place(before, len(before))) from None


def _place(text: str, at: int) -> tuple[int, int]:
    """Return the line and column of a position."""
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("the number must be finite")
    return value


def _is_bad_number(found: re.Match[str]) -> bool:
    """Return whether JSON's reader rejects the number by a ValueError without a position."""
    text = found[0]
    if (digits := text.lstrip("-")).isdigit():
        return len(digits) > MAX_INTEGER
    return not math.isfinite(float(text))
