"""Test the meaning of options, and that errors say what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.redis_stream.options import OptionError, Options
from services.redis_stream.schema import Kind

URL = "redis://127.0.0.1:6379"
SAMPLES = {"url": URL, "kind": "samples"}
DEAD = {"url": URL, "kind": "dead"}


def test_what_is_usual() -> None:
    found = Options.parse(SAMPLES)
    assert (found.kind, found.domains, found.start_of("s"), found.end_of("s")) == (
        Kind.SAMPLES,
        (),
        "0-0",
        "",
    )
    assert (found.rows_per_partition, found.page_rows, found.bodies) == (100_000, 250, -1)
    assert (found.fail_on_loss, found.fail_on_malformed, found.max_rows) == (True, False, 0)


def test_names_are_in_any_case_and_values_are_texts() -> None:
    told = {
        "URL": URL,
        "Kind": "DEAD",
        "ROWSPERPARTITION": "5",
        "failondataloss": "False",
        "onMalformed": "Fail",
    }
    found = Options.parse(told | {"queue": "a, b,", "domain": '["x,y"]', "readTimeoutS": "1.5", "path": "s"})
    assert (found.kind, found.rows_per_partition, found.fail_on_loss) == (Kind.DEAD, 5, False)
    assert (found.queues, found.domains, found.fail_on_malformed) == (("a", "b"), ("x,y",), True)
    assert found.reply_timeout_s == 1.5


def test_places_are_for_all_streams_or_for_each() -> None:
    found = Options.parse(SAMPLES | {"start": "5-0", "end": '{"a": "7-1"}'})
    assert (found.start_of("a"), found.start_of("b")) == ("5-0", "5-0")
    assert (found.end_of("a"), found.end_of("b")) == ("7-1", "0-0")  # streams that are not named are not read


@pytest.mark.parametrize(("value", "octets"), [("full", -1), ("None", 0), ("0", 0), ("17", 17)])
def test_bodies(value: str, octets: int) -> None:
    assert Options.parse(DEAD | {"bodies": value}).bodies == octets


def test_the_url_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    assert Options.parse({"kind": "dead"}).url == "redis://elsewhere"
    monkeypatch.setenv("PENSTOCK_STORE__URL", "redis://here")
    assert Options.parse({"kind": "dead"}).url == "redis://here"
    assert Options.parse(DEAD).url == URL


def test_a_login_beside_the_url(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("p@ss/word\n")
    for told in ({"password": "p@ss/word"}, {"passwordFile": str(file)}):
        found = Options.parse(DEAD | told | {"username": "me"})
        assert found.url == "redis://me:p%40ss%2Fword@127.0.0.1:6379"
        assert "word" not in repr(found)
    assert Options.parse(DEAD | {"password": "x"}).url == "redis://:x@127.0.0.1:6379"


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (
            {"colour": "red"},
            "unknown option 'colour'; known options: bodies, connectTimeoutS, domain, end, failOnData",
        ),
        ({"kind": "live"}, "option kind is 'live': use one of dead, samples, entries"),
        ({"url": "http://x"}, "option url: a store URL begins with one of redis://"),
        (
            {"url": ""},
            "option url is missing: give it, or set PENSTOCK_STORE__URL or REDIS_URL in the environment",
        ),
        (
            {"kind": "entries"},
            "option stream is missing: give the key of a stream, or kind 'dead' or 'samples'",
        ),
        (
            {"stream": "s"},
            "option stream cannot be used with kind 'samples', whose streams are found in the store",
        ),
        ({"queue": "q"}, "option queue is only for kind 'dead'"),
        (
            {"kind": "entries", "stream": "s", "domain": "d"},
            "option domain is only for kinds 'dead' and 'samples'",
        ),
        ({"domain": "[1]"}, "option domain must be a list of names, separated by commas or as JSON"),
        ({"domain": "[a"}, "option domain is not a JSON list: "),
        ({"start": "now"}, "option start: 'now' is not an id: write '1700000000000-0', or JSON"),
        ({"start": "18446744073709551616-0"}, "option start: '18446744073709551616-0' is not an id"),
        ({"end": '{"s": 7}'}, "option end: 7 is not an id"),
        ({"end": "{s}"}, "option end is not a JSON object: "),
        ({"rowsPerPartition": "0"}, "option rowsPerPartition is '0': use a number from 1 to 2147483647"),
        ({"pageRows": "many"}, "option pageRows is 'many': use a number from 1 to"),
        ({"minPartitions": "\u0665"}, "option minPartitions is '\u0665': use a number"),
        (
            {"bodies": "half"},
            "option bodies is 'half': use full, none, or the number of octets to keep of each body",
        ),
        ({"failOnDataLoss": "yes"}, "option failOnDataLoss is 'yes': use true or false"),
        ({"onMalformed": "drop"}, "option onMalformed is 'drop': use quarantine or fail"),
        ({"readTimeoutS": "0"}, "option readTimeoutS is '0': use a number of seconds above 0"),
        ({"connectTimeoutS": "nan"}, "option connectTimeoutS is 'nan': use a number of seconds above 0"),
        (
            {"password": "a", "passwordFile": "b"},
            "options password and passwordFile are both set: give one",
        ),
        ({"passwordFile": "/missing"}, "option passwordFile: "),
        (
            {"url": "redis://a:b@h", "password": "c"},
            "option url contains a login: leave out the options username and",
        ),
        ({"max_rows": "-1"}, "option max_rows is '-1': use a number from 0 to"),
        ({"url": "redis://h", "username": "me"}, "option username needs a password"),
    ],
)
def test_a_wrong_one_says_what_to_write(
    told: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PENSTOCK_STORE__URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OptionError) as caught:
        Options.parse(SAMPLES | told)
    assert str(caught.value).startswith(why)
    assert "redis://a:b" not in str(caught.value)
