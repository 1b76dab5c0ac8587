"""Store URLs: their parts, and the errors of invalid ones."""

import pytest

from services.outside.url import BadUrl
from services.store.redis.connect import Connector
from services.store.redis.embedded import EmbeddedSettings, EmbeddedStore
from services.store.redis.url import Address, StoreUrl


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://127.0.0.1", StoreUrl("single", (Address("127.0.0.1", 6379),))),
        ("redis://store:7000/3", StoreUrl("single", (Address("store", 7000),), "3", db=3)),
        ("redis://[::1]:7000", StoreUrl("single", (Address("::1", 7000),))),
        ("redis://[::1]", StoreUrl("single", (Address("::1", 6379),))),
        ("unix:///run/store.sock", StoreUrl("unix", (), "/run/store.sock")),
        ("unix:///run/store.sock?db=2", StoreUrl("unix", (), "/run/store.sock", db=2)),
        ("unix:///my%20data/%C3%A4/store.sock", StoreUrl("unix", (), "/my data/\u00e4/store.sock")),
        (
            "redis+sentinel://a:1,b:2/mymaster",
            StoreUrl("sentinel", (Address("a", 1), Address("b", 2)), "mymaster"),
        ),
        ("redis+sentinel://a/mymaster", StoreUrl("sentinel", (Address("a", 26379),), "mymaster")),
        ("redis+cluster://a:1,b", StoreUrl("cluster", (Address("a", 1), Address("b", 6379)))),
    ],
)
def test_parts_of_a_url(url: str, expected: StoreUrl) -> None:
    assert StoreUrl.parse(url) == expected


@pytest.mark.parametrize("scheme", ["rediss", "rediss+sentinel", "rediss+cluster"])
def test_tls_is_chosen_by_the_scheme(scheme: str) -> None:
    url = StoreUrl.parse(f"{scheme}://host:1/0?ssl_ca_certs=/ca.pem")
    assert url.tls
    assert url.options == {"ssl_ca_certs": "/ca.pem"}


@pytest.mark.parametrize(
    ("login", "credentials"),
    [
        ("", {}),
        ("edge:secret@", {"username": "edge", "password": "secret"}),
        (":secret@", {"password": "secret"}),
        ("edge:p%40ss%2Fword:more@", {"username": "edge", "password": "p@ss/word:more"}),
    ],
)
def test_credentials_are_percent_decoded(login: str, credentials: dict[str, str]) -> None:
    assert StoreUrl.parse(f"redis://{login}host").credentials == credentials


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "begins with one of redis://"),
        ("127.0.0.1:6379", "begins with one of redis://"),
        ("http://host", "begins with one of redis://"),
        ("redis://", "names at least one host"),
        ("redis+cluster:///", "names at least one host"),
        ("redis://:6379", "each host must be host or host:port"),
        ("redis://host:many", "its port from 1 to 65535"),
        ("redis://host:70000", "its port from 1 to 65535"),
        ("redis://::1", "an IPv6 address in brackets"),
        ("redis://a,b", "several hosts need"),
        ("redis://host/" + "9" * 5000, "ends with the number of a database"),
        ("redis://host?db=3", "the database is the path, as in redis://host:6379/3"),
        ("redis://host?ssl=true", "TLS is chosen by the scheme"),
        ("redis://host?ssl_ca_certs=/x", "TLS is chosen by the scheme"),
        ("redis://host?password=zzz", "write the user and password before the host"),
        ("redis://host?timeout=1", "allowed here: none"),
        ("rediss://host?ssl_ca_cert=/x", "allowed here: ssl_ca_certs, ssl_certfile, ssl_keyfile"),
        ("rediss://host?ssl_ca_certs=", "the option ssl_ca_certs is empty"),
        ("redis://host?sentinel_password=x", "need redis.sentinel://"),
        ("redis+sentinel://host/m?sentinel_pasword=x", "allowed here: sentinel_username, sentinel_password"),
        ("redis+sentinel://host/m?sentinel_password=a+b", "write %2B for a plus sign"),
        ("redis+sentinel://host/m/0", "ends with the service's name"),
        ("redis+cluster://host/3", "only database 0"),
        ("unix://host/s", "has no host"),
        ("redis://token@host", "the user has no password"),
        ("redis://edge:abc/def+g=@h", "percent-encode special characters"),
        ("redis://edge:12345#x@h", "percent-encode special characters"),
        ("redis://ann@corp:secret@h", "percent-encode special characters"),
        ("redis://edge:abc?def@h", "percent-encode special characters"),
        ("redis://edge:50%@h", "percent-encode special characters"),
        ("redis://edge:%ff@h", "not UTF-8"),
        ("redis://host\n", "a line end"),
        ("redis://host/one", "ends with the number of a database"),
        ("unix:///store.sock?db=one", "ends with the number of a database"),
        ("redis+sentinel://host:1", "ends with the service's name"),
        ("unix://", "names the socket"),
    ],
)
def test_invalid_url_says_what_to_write(url: str, message: str) -> None:
    with pytest.raises(BadUrl, match=message):
        Connector(url)


def test_only_sentinel_and_cluster_may_fail_over() -> None:
    urls = ("redis://h", "unix:///s", "redis+sentinel://h:1/m", "redis+cluster://h:1")
    assert [Connector(url).may_fail_over for url in urls] == [False, False, True, True]


def test_embedded_stores_url_is_its_socket(tmp_path) -> None:
    store = EmbeddedStore(EmbeddedSettings(tmp_path / "d\u00e4ta 1%?#"))
    assert StoreUrl.parse(store.url).path == str(store.socket)
