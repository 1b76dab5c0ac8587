"""Test that the readers of documents raise only their documented exception."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from services.outside.document import MAX_JSON_NODES, BadDocument, read_json, read_yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(8)
)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        (
            "metadata: {name: {{ .Values.name }}}",
            (1, 19),
            "a template such as {{ ... }} must be rendered first",
        ),
        ("a:\n  - " + "[" * 5000, (2, 67), "nested more than 64 levels deep"),
        ("a: b\nname: 2026-13-45", (2, 7), "the date does not exist"),
        ("name: !!int xx", (1, 7), "the value is not a valid int"),
        ("name: !!float ''", (1, 7), "the value is not a valid float"),
        ("name: !!bool xx", (1, 7), "the value is not a valid bool"),
        ("name: !!timestamp xx", (1, 7), "the date does not exist"),
        ("name: !!binary aGk=", (1, 7), "the tag 'binary' is not supported"),
        ("name: !!set {a}", (1, 7), "the tag 'set' is not supported"),
        ("name: !!python/name:os.system x", (1, 7), "is not supported"),
        ("name: !Ref x", (1, 7), "the tag '!Ref' is not supported"),
        ("name: !!map x", (1, 7), "expected a mapping node"),
        ("name: " + "9" * 5000, (1, 7), "the number is too long"),
        ('name: "\\ud800"', (1, 7), "an incomplete character"),
        ('name: "\\U00110000"', (1, 10), "is not YAML"),
        ("a: &a [*a]", (1, 8), "an alias refers to a node that contains it"),
        (BOMB, (6, 4), "the document has more than 200,000 values"),
        ("a: 1\na: 2", (2, 1), "the key 'a' is repeated"),
        ("a: [1, .nan]", (1, 8), "the number must be finite"),
        ("a: -.INF", (1, 4), "the number must be finite"),
        ("a: 1.0e+999", (1, 4), "the number must be finite"),
        ("a: {1: b}", (1, 5), "the key '1' is not text: put it in quotes"),
        ("a:\n  yes: b", (2, 3), "the key 'yes' is not text"),
        ("~: b", (1, 1), "the key '~' is not text"),
        ("1.5: b", (1, 1), "the key '1.5' is not text"),
        ("? !x a\n: b", (1, 3), "the key 'a' is not text"),
        ("a: [", (1, 5), ""),
        ("a: \x07", (1, 4), "a character that YAML does not allow"),
        (b"a: \xff", (1, 4), "the text is not UTF-8"),
    ],
)
def test_yaml_errors_have_line_and_column(text: str | bytes, place: tuple[int, int], problem: str) -> None:
    with pytest.raises(BadDocument) as caught:
        read_yaml(text)
    assert (caught.value.line, caught.value.column) == place
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[" * 200_000, (1, 64)),
        ('{"a": 1,\n "b": x}', (2, 7)),
        ("[\nNaN]", (2, 1)),
        ("[1,\n" + "9" * 5000 + "]", (2, 1)),
        ('["NaN, \\"1e999", 1e99,\n1e999]', (2, 1)),
        ('{"-Infinity": 1,\n "a": -Infinity}', (2, 7)),
        (f'["{"," * MAX_JSON_NODES}",\n{"0," * MAX_JSON_NODES}0]', (2, 2 * MAX_JSON_NODES - 4)),
        (b'"\xff"', (1, 2)),
    ],
)
def test_json_errors_have_line_and_column(text: str | bytes, place: tuple[int, int]) -> None:
    with pytest.raises(BadDocument) as caught:
        read_json(text)
    assert (caught.value.line, caught.value.column) == place


def test_yaml_is_read_as_kubernetes_reads_it() -> None:
    text = (
        "\ufeffday: 2026-11-28\nat: 2026-11-28T10:00:00Z\nbase: &b {a: 1}\nmore: {<<: *b, c: =}\n"
        'e: "\\ud83d\\ude00"\n---\n---\n- 1\n'
    )
    assert read_yaml(text.encode()) == [
        {
            "day": "2026-11-28",
            "at": "2026-11-28T10:00:00Z",
            "base": {"a": 1},
            "more": {"a": 1, "c": "="},
            "e": "\U0001f600",
        },
        None,
        [1],
    ]


SNIPPETS = st.sampled_from(
    ["{{ .x }}", "!!int ", "!!float ", "!!bool ", "!!null ", "!!timestamp ", "!!merge ", "!!value ", "!x ", "&a ",
     "*a", "<<: ", "? ", "- ", ": ", "[", "]", "{", "}", ", ", "\n", "\n  ", "---\n", "...\n", "%YAML 1.1\n",
     "%TAG ! x\n", "|\n", ">-\n", "'", '"', "\\u12", "\\U00110000", "2026-13-45", "0x", "0b_", "1:61", "-", "+.inf",
     ".nan: ", "1: ", "1.5", "yes: ", "~: ", "NaN", "1e999", "_", "1e", "#", "\t", "\0", "\ud800", "a: ", "key"]
)  # fmt: skip
VALUES: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def check_json(value: Any) -> None:
    """JSON holds it, as it is: with texts as keys, and finite numbers."""
    assert json.loads(json.dumps(value, allow_nan=False)) == value


@given(st.text() | st.binary() | st.lists(SNIPPETS, max_size=12).map("".join))
@example("? [" * 400)
@example("- " * 3000)
@example("{a: " * 3000)
def test_readers_raise_only_their_documented_exception(text: str | bytes) -> None:
    with suppress(BadDocument):
        check_json(read_yaml(text))
    with suppress(BadDocument):
        check_json(read_json(text))


@given(VALUES)
def test_yaml_and_json_readers_agree_on_json(value: Any) -> None:
    with suppress(UnicodeEncodeError):
        json.dumps(value, ensure_ascii=False).encode()
        assert read_json(json.dumps(value)) == value
        assert read_yaml(yaml.safe_dump(value, allow_unicode=False)) == [value]
