"""`tuning token` as somebody types it: what is made, renewed, and what a slip of the hand does."""

from __future__ import annotations

import pytest
from commands import tuning

from tuning.service.database.connection import Database


def test_a_team_without_a_token_is_said_to_be_new_and_a_name_is_taken_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNING_DATABASE", database.url.render_as_string())
    named = ("--team", "churn", "--role", "read", "--name", "anna")
    first = tuning("token", "create", *named)
    assert first.exit_code == 0
    assert "'churn' has no other valid token" in first.stderr
    taken = tuning("token", "create", *named)
    assert (taken.exit_code, taken.stdout) == (2, "")
    assert "has a token 'anna' already. Choose another name, or revoke that one first." in taken.stderr
    assert tuning("token", "create", *named[:-1], "ben").stderr == ""
    assert tuning("token", "revoke", "--team", "churn", "--name", "anna").exit_code == 0
    renewed = tuning("token", "create", *named)
    assert renewed.exit_code == 0
    assert renewed.stdout.split()[-1] != first.stdout.split()[-1]
