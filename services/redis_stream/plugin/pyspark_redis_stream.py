"""Provide the data source `redis_stream` where Spark looks for it, so that it need not be registered."""

from services.redis_stream.source import RedisStream as DefaultSource

__all__ = ["DefaultSource"]
