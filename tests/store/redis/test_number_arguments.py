"""Number arguments from Lua to Redis. The model tests also run on the checked library (lane.py)."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from redis.exceptions import ResponseError

from tests.servers import Client
from tests.store.checked_library import checked_source
from tests.stores import every_server

MOST = 2.0**53  # above it a Lua number is no longer exact


@pytest.fixture
def library(client: Client) -> Client:
    client.call("FUNCTION", "LOAD", "REPLACE", checked_source())
    return client


@every_server
def test_numbers_must_be_decimal_digits(library: Client) -> None:
    @settings(max_examples=100)
    @example(-0.0)
    @example(-0.4)
    @example(0.4)
    @example(1e15)
    @example(-1e15)
    @example(5e-324)
    @given(st.floats(-MOST, MOST) | st.integers(-(2**53), 2**53).map(float))
    def check(value: float) -> None:
        text = library.call("FCALL", "num", 0, repr(value)).decode()
        assert text == str(round(value))  # both round half to even
        library.call("HSET", "h", "counter", "0")
        assert library.call("HINCRBY", "h", "counter", text) == round(value)

    check()


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@every_server
def test_invalid_number_is_refused(library: Client, value: str) -> None:
    with pytest.raises(ResponseError, match="NUMBER"):
        library.call("FCALL", "num", 0, value)
