"""Real processes that want the same run: one owner each time, and nothing that another one wrote is ever read."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from builders import SPACE
from chaos import duplicates, figure, truth
from paths import HELPERS
from warm_children import run_script

from tuning import RunResult, TuneRunner
from tuning.errors import RunOwnedError
from tuning.records.ownership import Term, claim, newest_claimed, this_process
from tuning.runs.begin import begin
from tuning.storage.run_directory import RunDirectory


def _search(trials: int) -> TuneRunner:
    return TuneRunner(
        objective="racers:objective", search_space=SPACE, metric="loss", mode="min", trials=trials, mlflow=False
    )


def _racers(*arguments: str) -> list[dict[str, Any]]:
    done = run_script(HELPERS.joinpath("racers.py"), *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("races", [2, pytest.param(50, marks=pytest.mark.slow)])
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


def _race(directory: RunDirectory, number: int, runners: int) -> list[Term]:
    start, won = threading.Barrier(runners), []

    def run() -> None:
        start.wait()
        try:
            won.append(claim(RunDirectory(directory.uri), number, (), 1, 0.0))
        except RunOwnedError as error:
            assert str(this_process()) in str(error)  # noqa: PT017  # in a thread

    threads = [threading.Thread(target=run) for _ in range(runners)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won


def test_of_several_runners_that_race_for_a_run_one_wins_every_time(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    for number in range(1, 51):
        won = _race(directory, number, 2 if number <= 40 else 8)
        assert [term.number for term in won] == [number]
        assert newest_claimed(directory) == won[0]
