"""Connections to the servers of a store (single, Sentinel, Cluster, embedded), the function library and access rights.

What is sent over these connections is decided in `pipeline` and `catalogue`.
"""

from services.store.redis.connect import REPLY_TIMEOUT_S, Connector
from services.store.redis.embedded import EmbeddedSettings, EmbeddedStore
from services.store.redis.link import Link
from services.store.redis.memory import PUBLISH_LIMIT, Memory, memory_of
from services.store.redis.probe import Finding, Grade, findings
from services.store.redis.process_names import machine, process_name
from services.store.redis.rights import acl_rules, analytics_rules
from services.store.redis.tls_files import check_files, file_trouble
from services.store.redis.url import StoreUrl
from services.store.redis.users import Applied, apply_user

__all__ = [
    "PUBLISH_LIMIT",
    "REPLY_TIMEOUT_S",
    "Applied",
    "Connector",
    "EmbeddedSettings",
    "EmbeddedStore",
    "Finding",
    "Grade",
    "Link",
    "Memory",
    "StoreUrl",
    "acl_rules",
    "analytics_rules",
    "apply_user",
    "check_files",
    "file_trouble",
    "findings",
    "machine",
    "memory_of",
    "process_name",
]
