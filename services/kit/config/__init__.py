"""Settings of a process: layers of defaults, file, environment and flags, with their secrets.

It only reads settings: their meaning belongs to the packages that use them.
"""

from services.kit.config.flags import Flag, GivenFlag
from services.kit.config.layers import (
    MAX_SECONDS,
    SettingsError,
    Tree,
    describe_errors,
    merge,
    nested,
    read_flags,
)
from services.kit.config.secret import SecretText, SecretUrl, mask
from services.kit.config.settings import (
    GlobalSettings,
    HealthSettings,
    LogSettings,
    MovableHealthSettings,
    TracingSettings,
    load,
)

__all__ = [
    "MAX_SECONDS",
    "Flag",
    "GivenFlag",
    "GlobalSettings",
    "HealthSettings",
    "LogSettings",
    "MovableHealthSettings",
    "SecretText",
    "SecretUrl",
    "SettingsError",
    "TracingSettings",
    "Tree",
    "describe_errors",
    "load",
    "mask",
    "merge",
    "nested",
    "read_flags",
]
