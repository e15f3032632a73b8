"""What a run sets of Tune in the environment is its own; what the user has set stays."""

from __future__ import annotations

import os

import pytest

from tuning.driver.tuner import TUNE_SETTINGS, tune_settings

PENDING = "TUNE_MAX_PENDING_TRIALS_PG"


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.driver.tuner._SET", {})
    for name in (PENDING, *TUNE_SETTINGS):
        monkeypatch.setenv(name, "")  # put back after the test
        monkeypatch.delenv(name)


def test_each_run_of_a_process_has_as_many_trials_waiting_as_it_has_slots() -> None:
    for slots, waiting in ((8, "8"), (1, "2"), (3, "3")):
        tune_settings(slots)
        assert os.environ[PENDING] == waiting
    assert {name: os.environ[name] for name in TUNE_SETTINGS} == TUNE_SETTINGS


def test_what_the_user_has_set_stays() -> None:
    os.environ[PENDING] = os.environ["TUNE_WARN_THRESHOLD_S"] = "5"
    tune_settings(8)
    assert (os.environ[PENDING], os.environ["TUNE_WARN_THRESHOLD_S"]) == ("5", "5")
    os.environ[PENDING] = "7"
    tune_settings(8)
    assert os.environ[PENDING] == "7"
