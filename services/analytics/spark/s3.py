"""Set up Hadoop's file system s3a, and delta-rs, from the environment variables of other S3 clients."""

from __future__ import annotations

from collections.abc import Mapping

FS = "spark.hadoop.fs.s3a."
DEFAULT_REGION = "us-east-1"
# The SDK's own chain: environment, profile, web identity, container, instance. Hadoop's default omits some of them.
CREDENTIALS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"


def s3_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings for s3a:// URLs: region, and endpoint if AWS_ENDPOINT_URL names one.

    They contain no credentials: driver and executors find these in their environment (AWS_ACCESS_KEY_ID, a role...).
    """
    settings = {
        "aws.credentials.provider": CREDENTIALS,
        "endpoint.region": _region(environment),
    }
    if endpoint := _endpoint(environment):
        settings |= {
            "endpoint": endpoint,
            "path.style.access": "true",  # such stores rarely have a DNS name for each bucket
            "connection.ssl.enabled": str(endpoint.startswith("https://")).lower(),
        }
    return {f"{FS}{name}": value for name, value in settings.items()}


def delta_rs_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the same settings for delta-rs. A commit fails if another program has made one of its number."""
    settings = {"AWS_REGION": _region(environment), "AWS_CONDITIONAL_PUT": "etag"}
    if endpoint := _endpoint(environment):
        is_plain = str(endpoint.startswith("http://")).lower()
        settings |= {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": is_plain}
    return settings


def _region(environment: Mapping[str, str]) -> str:
    return environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or DEFAULT_REGION


def _endpoint(environment: Mapping[str, str]) -> str:
    return environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or ""
