"""Where Spark looks for a data source of the name `redis_stream`: nobody has to register it."""

from services.analytics.source import RedisStream as DefaultSource

__all__ = ["DefaultSource"]
