"""Settings that the text edge refuses at its start (pubsub.md 1.2, 4.5)."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from services.pubsub.settings import LinkSettings, PubsubSettings


def test_silence_outlives_two_beats() -> None:
    """Check that silence outlives two beats; otherwise one late BEAT would end a working link (4.5)."""
    with pytest.raises(ValidationError, match="silence_s must be greater than twice beat_s"):
        LinkSettings(beat_s=5.0, silence_s=10.0)
    assert LinkSettings(beat_s=5.0, silence_s=10.1).limits().silence_s == 10.1


def test_beat_alone_is_validated() -> None:
    """Check that the beat is checked alone, too: a longer interval requires a longer silence (4.5)."""
    with pytest.raises(ValidationError, match="silence_s"):
        PubsubSettings.model_validate({"link": {"beat_s": 7.5}})


def test_link_limit_includes_the_longest_client_line() -> None:
    """Check that a link carries lines of clients plus 4 KiB for the header (1.2, 4.5)."""
    said = {"max_line_bytes": 1 << 20, "link": {"max_line_bytes": 1 << 20}}
    with pytest.raises(ValidationError, match="at least max_line_bytes plus 4 KiB"):
        PubsubSettings.model_validate(said)
