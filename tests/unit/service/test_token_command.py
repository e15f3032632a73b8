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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *(({"--days": days}, f"--days {shown}: a number above 0 and at most 36,500")
          for days, shown in (("nan", "nan"), ("inf", "inf"), ("1e300", "1e+300"), ("1e7", "1e+07"), ("0", "0"))),
        ({"--name": "n" * 400}, "has 400 characters: up to 255 are allowed"),
    ],
)  # fmt: skip
def test_a_token_without_a_possible_end_or_name_is_refused(
    given: dict[str, str], said: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNING_DATABASE", database.url.render_as_string())
    options = {"--team": "churn", "--role": "read", "--name": "anna", **given}
    refused = tuning("token", "create", *(part for option in options.items() for part in option))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert said in refused.stderr
    assert tuning("token", "list").stderr == "no token\n"
