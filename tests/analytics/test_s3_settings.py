"""Test Spark's settings for buckets, which follow the environment of other S3 clients."""

from __future__ import annotations

import pytest

from services.analytics.spark.s3 import CREDENTIALS, FS, s3_settings


def test_without_endpoint_the_bucket_is_amazons() -> None:
    assert s3_settings({}) == {
        f"{FS}aws.credentials.provider": CREDENTIALS,
        f"{FS}endpoint.region": "us-east-1",
    }


@pytest.mark.parametrize("name", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_region_is_that_of_the_environment(name: str) -> None:
    assert s3_settings({name: "eu-north-1"})[f"{FS}endpoint.region"] == "eu-north-1"


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
@pytest.mark.parametrize(("scheme", "tls"), [("http", "false"), ("https", "true")])
def test_endpoint_of_another_store(name: str, scheme: str, tls: str) -> None:
    settings = s3_settings({name: f"{scheme}://127.0.0.1:7070"})
    assert settings[f"{FS}endpoint"] == f"{scheme}://127.0.0.1:7070"
    assert settings[f"{FS}path.style.access"] == "true"
    assert settings[f"{FS}connection.ssl.enabled"] == tls


def test_credentials_are_never_among_the_settings() -> None:
    environment = {"AWS_ACCESS_KEY_ID": "a-key", "AWS_SECRET_ACCESS_KEY": "a-secret"}
    assert not {"a-key", "a-secret"} & {*s3_settings(environment).values()}
