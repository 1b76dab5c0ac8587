"""Test the settings of mappings (docs/sysv.md 1.2, 4.2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from services.kit.config.settings import SettingsError, load
from services.sysv.settings import Mapping, SysvSettings, format_key
from tests.sysv.settings import mapping


def test_keys_are_parsed() -> None:
    for said, meant in ((42, 42), ("42", 42), ("0x2a", 42), (0xDEADBEEF, 0xDEADBEEF - (1 << 32)), (-1, -1)):
        assert Mapping(**mapping("in", said, "q")).key == meant  # type: ignore[arg-type]
    assert format_key(-1) == "0xffffffff"
    for said in (0, 0.0, 5.0, 1e12, 1 << 32, -(1 << 31) - 1, "key", "", "0.0", True, None, 1.5, [1]):
        with pytest.raises(ValidationError):
            Mapping(**mapping("in", said, "q"))  # type: ignore[arg-type]


def test_modes_are_parsed() -> None:
    for said in ("0640", "640"):
        assert Mapping(**mapping("in", 1, "q", mode=said)).permissions == 0o640
    for said in (640, 0o640, 0o600, "0888", "rw", -1, True):  # YAML reads 0640 as 416, and 640 as 640
        with pytest.raises(ValidationError, match="in quotes, such as '0640'"):
            Mapping(**mapping("in", 1, "q", mode=said))


def test_invalid_settings_are_rejected() -> None:
    with pytest.raises(ValidationError, match="direction out only"):
        Mapping(**mapping("in", 1, "q", format="t_msg"))
    two = {"a": mapping("out", 1, "q"), "b": mapping("out", "0x1", "r")}  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="'a' and 'b' both receive from the local queue 0x00000001"):
        SysvSettings.model_validate({"mappings": two})


def test_mappings_can_be_set_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Check that mappings can be set by environment variables, and that errors name the variable."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REDIS_URL", raising=False)
    for name, value in (("KEY", "0x2a"), ("QUEUE", "orders"), ("DIRECTION", "out"), ("MODE", "0660")):
        monkeypatch.setenv(f"PENSTOCK_SYSV__MAPPINGS__MINE__{name}", value)
    settings = load().section(SysvSettings, "sysv", {"idle_s": 0.5})
    assert settings.mappings == {"mine": Mapping(**mapping("out", 42, "orders", mode="0660"))}
    assert settings.idle_s == 0.5
    monkeypatch.setenv("PENSTOCK_SYSV__MAPPINGS__MINE__KEY", "0")
    with pytest.raises(
        SettingsError, match=r"sysv.mappings.mine.key: must have 32 bits.* \(from PENSTOCK_SYSV__"
    ):
        load().section(SysvSettings, "sysv", {})
    with pytest.raises(SettingsError, match=r"sysv.mapings: unknown; allowed: mappings, journal"):
        load(flags={"sysv": {"mapings": {}, "mappings": {}}}).section(SysvSettings, "sysv", {"mappings": {}})
