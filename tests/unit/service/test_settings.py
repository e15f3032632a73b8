"""A configuration file that is wrong is told by its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuning.errors import DefinitionError
from tuning.service.settings import read_settings

DEFAULTS = {"database": "sqlite://", "storage": "runs", "work": "work"}


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("dta: [x]", "dta: unknown key. Did you mean 'data'?"),
        ("teams: {a: {quotas: {slot: 2}}}", "teams.a.quotas.slot: unknown key. Did you mean 'slots'?"),
        ("teams: {a: {shares: 2}}", "teams.a.shares: unknown key. Did you mean 'share'?"),
        ("teams: {a: 2}", "teams.a: must be a mapping"),
    ],
)
def test_a_wrong_key_is_named_with_its_place(tmp_path: Path, written: str, says: str) -> None:
    (file := tmp_path / "service.yaml").write_text(written)
    with pytest.raises(DefinitionError) as refused:
        read_settings(file, DEFAULTS)
    assert says in str(refused.value)


def test_folders_of_data_that_are_not_there_are_found(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (file := tmp_path / "service.yaml").write_text(
        "data: [there, away, s3://bucket/x]\nteams: {a: {data: [lost]}, b: {data: [there]}}\n"
    )
    settings = read_settings(file, DEFAULTS)
    assert settings.missing_folders == [str(tmp_path / "away"), str(tmp_path / "lost")]
