"""Test that the reader of URLs raises only its documented exception and shows no secret."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from services.kit.config.layers import SettingsError
from services.kit.config.secret import SecretUrl
from services.kit.config.settings import load
from services.outside.url import BadUrl, mask_url, parse_url
from services.store.redis.url import SCHEMES, StoreUrl

SECRET = "hunter2"
SCHEME = st.sampled_from([*SCHEMES, "http", "s3", "REDIS"])
PIECES = st.lists(
    st.sampled_from(
        [*"/?#@:%[],&=+\\ \t\n\0'\"", "%2F", "%zz", "%ff", "//", "host", "6379", "db", "\u00fc", "\ud800"]
    )
    | st.text(max_size=3),
    max_size=8,
).map("".join)


@given(st.one_of(st.text(), st.builds("{}://{}".format, SCHEME, PIECES)))
@example("redis://" + "[" * 5000)
@example("redis://h/" + "9" * 5000)
def test_readers_raise_only_their_documented_exception(text: str) -> None:
    for read in (parse_url, StoreUrl.parse):
        with suppress(BadUrl):
            read(text)
    mask_url(text)


@given(SCHEME, PIECES, PIECES, st.sampled_from(["user", "password", "query", "fragment"]))
@example("redis", "edge:abc/def+g=", "", "user")
@example("redis", "", "?", "query")
def test_secrets_are_never_shown(scheme: str, before: str, behind: str, place: str) -> None:
    """Also with unescaped characters around it. A login is known by its '@'."""
    text = {
        "user": f"{scheme}://{before}{SECRET}{behind}:p@host:1/0",
        "password": f"{scheme}://u:{before}{SECRET}{behind}@host:1/0",
        "query": f"{scheme}://u:p@host:1/0?{before}{SECRET}{behind}",
        "fragment": f"{scheme}://u:p@host:1/0#{before}{SECRET}{behind}",
    }[place]
    said = [mask_url(text), mask_url(f"cannot reach {text!r}"), str(SecretUrl(text)), repr(SecretUrl(text))]
    try:
        parsed = StoreUrl.parse(text)
    except BadUrl as error:
        said.append(str(error))
    else:
        said.append(repr(parsed))
    try:
        settings = load(flags={"store": {"url": text}, "tracing": {"endpoint": text}})
    except SettingsError as error:
        said.append(str(error))
    else:
        said += [repr(settings), str(settings.masked()), settings.model_dump_json()]
    assert SECRET not in "\n".join(said)
