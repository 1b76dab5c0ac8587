"""Types that all protocols share: errors by whose fault they are."""


class PeerError(Exception):
    """The peer broke the protocol: answer if its spec says so, count by `reason`, close."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason  # a stable snake_case label, for metrics
        self.detail = detail  # short text for the log, without payload

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


class LocalError(Exception):
    """Our own code broke the protocol's rules: a bug. Log the traceback and close."""
