"""Real processes that want the same run: one owner each time, and nothing that another one wrote is ever read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chaos import SPACE, duplicates, environment, figure, truth
from paths import HELPERS

from tuning import RunResult, TuneRunner
from tuning.runs.begin import begin

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]


def _search(trials: int) -> TuneRunner:
    return TuneRunner(
        objective="racers:objective", search_space=SPACE, metric="loss", mode="min", trials=trials, mlflow=False
    )


def _racers(*arguments: str) -> list[dict[str, Any]]:
    script = str(HELPERS.joinpath("racers.py"))
    done = subprocess.run(
        [sys.executable, script, *arguments], env=environment(), capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("races", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_of_two_that_race_for_a_run_one_owns_it_every_time(tmp_path: Path, races: int) -> None:
    run = str(tmp_path / "run")
    _search(2).run(run, progress=False, in_process=True)
    rounds = _racers("race", run, str(races))
    winners = []
    for number, end in enumerate(rounds, 2):
        assert end["codes"] == [0, 1]
        assert end["term"] == number
        assert [end["owner"]] == end["won"]
        winners += end["won"]
    result = RunResult(run)
    workers = [int(record.worker.rsplit(":", 1)[1]) for record in result.trial_records[2:]]
    assert workers == winners  # one trial each, in order
    assert duplicates(result) == []
    assert truth(result) == truth(_search(2 + races).run(str(tmp_path / "whole"), progress=False, in_process=True))
    figure(f"{races} races of two runners for a run: one owner each time")


def test_an_owner_that_wakes_up_after_it_was_replaced_harms_nobody(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    begun = begin(_search(30).definition, run)
    begun.lease.release()
    assert _racers("wake", run) == [{"took": 0, "woke": 1}]
    result = RunResult(run)
    assert duplicates(result) == []
    assert truth(result) == truth(_search(30).run(str(tmp_path / "whole"), progress=False, in_process=True))
    assert result.term.number == 3
